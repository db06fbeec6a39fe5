package podspec_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

func TestContainersInheritThePodsLimits(t *testing.T) { // cm-33
	one, zero := resource.MustParse("1"), resource.MustParse("0")
	pod := &v1.Pod{}
	own := &v1.Container{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": one, "memory": zero}}}
	assert.Equal(t, own.Resources.Limits, podspec.Limits(pod, own))
	assert.False(t, podspec.Inherits(pod, own, v1.ResourceMemory))

	two := resource.MustParse("2")
	pod.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": two, "memory": two, "hugepages-2Mi": two, "example.com/gpu": two}}
	assert.Equal(t, v1.ResourceList{"cpu": one, "memory": two, "hugepages-2Mi": two}, podspec.Limits(pod, own))
	assert.Equal(t, v1.ResourceList{"cpu": one, "memory": zero}, own.Resources.Limits, "it is not changed")
	assert.Equal(t, v1.ResourceList{"cpu": two, "memory": two, "hugepages-2Mi": two}, podspec.Limits(pod, &v1.Container{}))
	assert.False(t, podspec.Inherits(pod, own, v1.ResourceCPU))
	assert.True(t, podspec.Inherits(pod, own, v1.ResourceMemory))
	assert.False(t, podspec.Inherits(pod, own, "example.com/gpu"))
}

func TestAPodIsLimitedIfAllContainersAre(t *testing.T) { // cm-13, cm-14
	limited := func(cpu string) v1.Container {
		return v1.Container{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}
	}
	pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{limited("1")}, Containers: []v1.Container{limited("1"), limited("1")}}}
	remaining := func() []v1.ResourceName {
		total := v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("1")}
		podspec.DeletePartial(pod, total)
		return slices.Sorted(maps.Keys(total))
	}
	assert.Equal(t, []v1.ResourceName{"cpu", "example.com/gpu"}, remaining())
	for _, c := range []*v1.Container{&pod.Spec.InitContainers[0], &pod.Spec.Containers[1]} {
		*c = limited("0")
		assert.NotContains(t, remaining(), v1.ResourceCPU, "a limit of zero")
		*c = v1.Container{}
		assert.NotContains(t, remaining(), v1.ResourceCPU)
		pod.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("3")}}
		assert.Contains(t, remaining(), v1.ResourceCPU)
		pod.Spec.Resources = nil
		*c = limited("1")
	}
}
