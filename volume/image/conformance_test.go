package image_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/image"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-60
func TestThePluginKeepsTheContract(t *testing.T) {
	volumetest.TestPlugin(t, volumetest.Suite{
		New:         func(string) volume.Plugin { return new(image.Plugin) },
		Spec:        &volume.Spec{Volume: &v1.Volume{Name: "model", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "registry.example.com/model:1"}}}},
		Outside:     true,
		NoConstruct: true,
	})
}
