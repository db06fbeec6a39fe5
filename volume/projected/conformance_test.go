package projected_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestThePluginKeepsTheContract(t *testing.T) {
	mounter := new(volumetest.Mounter)
	volumetest.TestPlugin(t, volumetest.Suite{
		New: func(string) volume.Plugin {
			return plugin(t, volumetest.NewObjects(volumetest.ConfigMap("default", "web", map[string]string{"a": "1", "b": "2"}), volumetest.Secret("default", "web", map[string]string{"a": "1"})), mounter)
		},
		Spec: &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "web"}}},
			{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "web"}}},
		}}}}},
		Mounter:  mounter,
		ReadOnly: true,
	})
}

func plugin(t *testing.T, objects payload.Objects, mounter volume.Mounter) *projected.Plugin {
	t.Helper()
	p, err := projected.New(projected.Config{Objects: objects, Tmpfs: &emptydir.Tmpfs{Mounter: mounter}})
	require.NoError(t, err)
	return p
}
