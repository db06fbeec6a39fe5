package allocation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation"
)

func TestInfeasibleResizes(t *testing.T) {
	swaps := func(_ *v1.Pod, c *v1.Container) bool { return c.Name == "a" }
	restart := func(pod *v1.Pod) *v1.Pod {
		pod.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: "cpu"}, {ResourceName: "memory", RestartPolicy: v1.RestartContainer}}
		return pod
	}
	const guaranteed = "cpu=1/1 memory=1Gi/1Gi"
	static := allocation.NodeConstraints{StaticCPU: true, StaticMemory: true}
	for name, tc := range map[string]struct {
		node             allocation.NodeConstraints
		desired, granted *v1.Pod
		want             string
	}{
		"al-10 nothing against it":                        {allocation.NodeConstraints{}, podOf("u", "a: cpu=2/2"), podOf("u", "a: cpu=1/1"), ""},
		"al-10 off":                                       {allocation.NodeConstraints{NoResize: "the runtime cannot"}, podOf("u", "a: cpu=2/2"), podOf("u", "a: cpu=1/1"), "the runtime cannot"},
		"al-10 memory that may swap":                      {allocation.NodeConstraints{Swaps: swaps}, podOf("u", "a: memory=2"), podOf("u", "a: memory=1"), "the memory of container a, which may swap, cannot be resized without a restart"},
		"al-10 memory that may swap, with a restart":      {allocation.NodeConstraints{Swaps: swaps}, restart(podOf("u", "a: memory=2")), podOf("u", "a: memory=1"), ""},
		"al-10 only cpu of what may swap":                 {allocation.NodeConstraints{Swaps: swaps}, podOf("u", "a: cpu=2 memory=1"), podOf("u", "a: cpu=1 memory=1"), ""},
		"al-10 memory of what may not swap":               {allocation.NodeConstraints{Swaps: swaps}, podOf("u", "b: memory=2"), podOf("u", "b: memory=1"), ""},
		"al-10 cpu under a static manager":                {static, podOf("u", "a: cpu=2/2 memory=1Gi/1Gi"), podOf("u", "a: "+guaranteed), "the cpu of a Guaranteed pod cannot be resized under a static CPU manager"},
		"al-10 memory under a static manager":             {static, podOf("u", "a: cpu=1/1 memory=2Gi/2Gi"), podOf("u", "a: "+guaranteed), "the memory of a Guaranteed pod cannot be resized under a static memory manager"},
		"al-10 a static manager has no part in Burstable": {static, podOf("u", "a: cpu=2/3"), podOf("u", "a: cpu=1/3"), ""},
		"al-10 a static manager of the other resource":    {allocation.NodeConstraints{StaticMemory: true}, podOf("u", "a: cpu=2/2 memory=1Gi/1Gi"), podOf("u", "a: "+guaranteed), ""},
		"as much as there is":                             {allocation.NodeConstraints{Allocatable: res("cpu=4 memory=1Gi").Requests}, podOf("u", "a: cpu=3 memory=1Gi", "b: cpu=1"), podOf("u", "a: cpu=1", "b: cpu=1"), ""},
		"more cpu than there is":                          {allocation.NodeConstraints{Allocatable: res("cpu=4").Requests}, podOf("u", "a: cpu=3", "b: cpu=2"), podOf("u", "a: cpu=1", "b: cpu=2"), "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"},
		"more memory than there is":                       {allocation.NodeConstraints{Allocatable: res("memory=1Ki").Requests}, podOf("u", "a: memory=2Ki"), podOf("u", "a:"), "Node didn't have enough capacity: memory, requested: 2048, capacity: 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.node.Feasible(tc.desired, tc.granted))
		})
	}
	t.Run("al-10 no admitter is called then", func(t *testing.T) {
		d := newDesk(t, allocation.Config{Node: static})
		pod := wants(d.runningAt(t, "u", guaranteed), "cpu=2/2 memory=1Gi/1Gi")
		d.Allocate(t.Context(), pod, nil)
		assert.Equal(t, []string{"add u 1"}, d.asked)
		assert.Equal(t, []string{"PodResizePending=True Infeasible the cpu of a Guaranteed pod cannot be resized under a static CPU manager @2"}, conditions(d, "u"))
	})
}
