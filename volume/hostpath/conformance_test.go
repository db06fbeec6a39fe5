package hostpath_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestThePluginKeepsTheContract(t *testing.T) {
	volumetest.TestPlugin(t, volumetest.Suite{
		New:         func(string) volume.Plugin { return new(hostpath.Plugin) },
		Spec:        spec(t.TempDir(), v1.HostPathDirectory),
		Outside:     true,
		NoConstruct: true,
	})
}

func spec(path string, typ v1.HostPathType) *volume.Spec {
	return &volume.Spec{Volume: &v1.Volume{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path, Type: &typ}}}}
}
