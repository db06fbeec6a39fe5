package downward_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestThePluginKeepsTheContract(t *testing.T) {
	mounter := new(volumetest.Mounter)
	volumetest.TestPlugin(t, volumetest.Suite{
		New:      func(string) volume.Plugin { return plugin(t, mounter) },
		Spec:     &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}}},
		Mounter:  mounter,
		ReadOnly: true,
	})
}

func plugin(t *testing.T, mounter volume.Mounter) *downward.Plugin {
	t.Helper()
	p, err := downward.New(downward.Config{Tmpfs: &emptydir.Tmpfs{Mounter: mounter}})
	require.NoError(t, err)
	return p
}
