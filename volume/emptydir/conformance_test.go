package emptydir_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestThePluginKeepsTheContract(t *testing.T) {
	for name, medium := range map[string]v1.StorageMedium{"disk": "", "memory": v1.StorageMediumMemory, "huge pages": "HugePages-2Mi"} {
		t.Run(name, func(t *testing.T) {
			mounter := new(volumetest.Mounter)
			volumetest.TestPlugin(t, volumetest.Suite{
				New:  func(string) volume.Plugin { return plugin(t, mounter) },
				Spec: &volume.Spec{Volume: &v1.Volume{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: medium}}}},
				Pod: &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")},
				}}}}},
				Mounter: mounter,
			})
		})
	}
}

func plugin(t *testing.T, mounter volume.Mounter) *emptydir.Plugin {
	t.Helper()
	p, err := emptydir.New(emptydir.Config{Mounter: mounter, NoSwap: new(true)})
	require.NoError(t, err)
	return p
}
