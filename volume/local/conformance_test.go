package local_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestThePluginKeepsTheContract(t *testing.T) {
	mounter := new(volumetest.Mounter)
	volumetest.TestPlugin(t, volumetest.Suite{
		New:      func(root string) volume.Plugin { return plugin(t, root, mounter) },
		Spec:     spec(t.TempDir()),
		Mounter:  mounter,
		ReadOnly: true, // a write to an in-memory mount lands in the directory below
	})
}

func plugin(t *testing.T, root string, mounter volume.Mounter) *local.Plugin {
	t.Helper()
	p, err := local.New(local.Config{RootDir: root, Mounter: mounter})
	require.NoError(t, err)
	return p
}

func spec(path string) *volume.Spec {
	pv := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		AccessModes:            []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
	}}
	pv.Name = "pv-1"
	return &volume.Spec{Volume: &v1.Volume{Name: "data"}, PV: pv}
}
