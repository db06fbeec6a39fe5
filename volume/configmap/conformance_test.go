package configmap_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestThePluginKeepsTheContract(t *testing.T) {
	mounter := new(volumetest.Mounter)
	volumetest.TestPlugin(t, volumetest.Suite{
		New: func(string) volume.Plugin {
			return plugin(t, volumetest.NewObjects(volumetest.ConfigMap("default", "web", map[string]string{"a": "1", "b": "2"}), volumetest.Secret("default", "web", map[string]string{"a": "1"})), mounter)
		},
		Spec:     &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "web"}}}}},
		Mounter:  mounter,
		ReadOnly: true,
	})
}

func plugin(t *testing.T, objects payload.Objects, mounter volume.Mounter) *configmap.Plugin {
	t.Helper()
	p, err := configmap.New(configmap.Config{Objects: objects, Mounter: mounter})
	require.NoError(t, err)
	return p
}
