package eviction_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
)

func diskStats(bytes string) *statsapi.FsStats { return &statsapi.FsStats{UsedBytes: bytesOf(bytes)} }

// ev-49: the limit of a container counts its writable layer, whichever file system has it, and applies to
// sidecars, too.
func TestTheLimitOfAContainerCountsItsWritableLayer(t *testing.T) {
	limit := v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")}}
	always := v1.ContainerRestartPolicyAlways
	for layout, name := range map[eviction.Layout]string{
		0: "single", eviction.DedicatedImageFS: "dedicated", eviction.SplitImageFS: "split",
	} {
		for _, c := range []struct {
			container, rootfs, logs string
			over                    bool
		}{
			{"main", "1025Mi", "0", true},
			{"main", "800Mi", "300Mi", true},
			{"main", "700Mi", "300Mi", false},
			{"sidecar", "1025Mi", "0", true},
			{"init", "1025Mi", "0", false},
		} {
			t.Run(fmt.Sprintf("%s/%s/%s+%s", name, c.container, c.rootfs, c.logs), func(t *testing.T) {
				pod := podOf("web")
				pod.Spec.Containers[0].Resources = limit
				pod.Spec.InitContainers = []v1.Container{{Name: "init", Resources: limit}, {Name: "sidecar", Resources: limit, RestartPolicy: &always}}
				in := lowMemory(pod)
				in.Policy.Thresholds = nil
				in.RootDevice, in.ImageDevice, in.LayerDevice = layout.Devices()
				in.Summary.Pods[0].EphemeralStorage = diskStats("0")
				in.Summary.Pods[0].Containers = []statsapi.ContainerStats{{Name: c.container, Rootfs: diskStats(c.rootfs), Logs: diskStats(c.logs)}}
				local := in.Plan().Local
				if !c.over {
					assert.Empty(t, local)
					return
				}
				if assert.Len(t, local, 1) {
					assert.Equal(t, fmt.Sprintf(`Container %s exceeded its local ephemeral storage limit "1Gi". `, c.container), local[0].Message)
				}
			})
		}
	}
}

// ev-48: a summary without the total of the pod has the parts of it.
func TestTheLimitOfAPodDoesNotNeedTheTotal(t *testing.T) {
	pod := podOf("web")
	limit := v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")}}
	pod.Spec.Containers = []v1.Container{{Name: "a", Resources: limit}, {Name: "b", Resources: limit}}
	pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	in := lowMemory(pod)
	in.Policy.Thresholds = nil
	in.Summary.Pods[0].Containers = []statsapi.ContainerStats{{Name: "a", Rootfs: diskStats("900Mi"), Logs: diskStats("100Mi")}, {Name: "b", Rootfs: diskStats("1000Mi")}}
	in.Summary.Pods[0].VolumeStats = []statsapi.VolumeStats{{Name: "v", FsStats: *diskStats("49Mi")}}
	local := in.Plan().Local
	if assert.Len(t, local, 1) {
		assert.Equal(t, "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ", local[0].Message)
	}
	in.Summary.Pods[0].VolumeStats = nil
	assert.Empty(t, in.Plan().Local)
}
