package downward_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-53
func TestLabelsThatChangeAreSeen(t *testing.T) {
	p, err := downward.New(downward.Config{
		Tmpfs: &emptydir.Tmpfs{Mounter: new(volumetest.Mounter), Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}},
	})
	require.NoError(t, err)
	s := &volume.Spec{Volume: &v1.Volume{Name: "info", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
		{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		{Path: "cpu", ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "c", Resource: "limits.cpu"}},
	}}}}}
	req := volumetest.Request(t, p, s)
	req.Pod.Spec.Containers = []v1.Container{{Name: "c"}}
	for _, want := range []string{"", `a="1"`, `a="2"`} {
		if want != "" {
			req.Pod = req.Pod.DeepCopy()
			req.Pod.Labels = map[string]string{"a": want[3:4]}
		}
		mounted, err := p.SetUp(t.Context(), req)
		require.NoError(t, err)
		data, err := os.ReadFile(filepath.Join(mounted.Path, "labels"))
		require.NoError(t, err)
		assert.Equal(t, want, string(data))
		data, err = os.ReadFile(filepath.Join(mounted.Path, "cpu"))
		require.NoError(t, err)
		assert.Equal(t, "4", string(data), "no limit: the node's")
		req.Refresh = true
	}
}
