package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestInfeasibleResizes(t *testing.T) { // al-10
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := func(requests, limits v1.ResourceList) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}}}}
	}
	guaranteed := func(cpu, memory string) *v1.Pod { return pod(list(cpu, memory), list(cpu, memory)) }
	burstable := func(cpu, memory string) *v1.Pod { return pod(list(cpu, memory), nil) }
	swap := podconfig.Node{CgroupVersion: 2, Swap: podconfig.Swap{Controller: true, Limited: true, Bytes: 1 << 30}}
	const cpuStatic, memoryStatic = "cpuManagerPolicy: static\n", "memoryManagerPolicy: Static\n"
	for name, tc := range map[string]struct {
		lines              string
		facts              podconfig.Node
		processes          bool
		allocated, desired *v1.Pod
		want               string
	}{
		"no policy":             {"", podconfig.Node{}, false, guaranteed("1", "1Gi"), guaranteed("2", "2Gi"), ""},
		"CPU, static":           {cpuStatic, podconfig.Node{}, false, guaranteed("1", "1Gi"), guaranteed("2", "1Gi"), "the cpu of a Guaranteed pod cannot be resized under a static CPU manager"},
		"memory, CPU is static": {cpuStatic, podconfig.Node{}, false, guaranteed("1", "1Gi"), guaranteed("1", "2Gi"), ""},
		"memory, static":        {memoryStatic, podconfig.Node{}, false, guaranteed("1", "1Gi"), guaranteed("1", "2Gi"), "the memory of a Guaranteed pod cannot be resized under a static memory manager"},
		"burstable":             {cpuStatic + memoryStatic, podconfig.Node{}, false, burstable("1", "1Gi"), burstable("2", "2Gi"), ""},
		"swap":                  {"", swap, false, burstable("1", "1Gi"), burstable("1", "2Gi"), "the memory of container c, which may swap, cannot be resized without a restart"},
		"plain processes":       {"", podconfig.Node{}, true, burstable("1", "1Gi"), burstable("1", "2Gi"), "plain processes have no limits that could be changed"},
	} {
		cfg := wingtest.Standalone(t, tc.lines)
		cfg.Runtime.Processes = tc.processes
		var got allocation.NodeConstraints
		cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *allocation.Config) {
			got = c.Node
		}))
		b := wingtest.Base(t, cfg)
		_, err := newAllocation(b, allocationDeps{Runtime: PodRuntime{Facts: tc.facts}, NoResize: Services{Runtime: b.Config.Runtime}.NoResize()})
		require.NoError(t, err, name)
		assert.Equal(t, tc.want, got.Feasible(tc.desired, tc.allocated), name)
	}
}
