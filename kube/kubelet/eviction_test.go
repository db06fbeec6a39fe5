package kubelet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestEvictionPolicy(t *testing.T) {
	signals := func(p eviction.Policy) (all []eviction.Signal) {
		for _, threshold := range p.Thresholds {
			all = append(all, threshold.Signal)
		}
		return all
	}
	p, ignored, err := stores.EvictionPolicy(decode(t, "evictionHard: {memory.available: 1Gi}\n"))
	require.NoError(t, err)
	assert.Empty(t, ignored)
	assert.ElementsMatch(t, []eviction.Signal{eviction.MemoryAvailable, eviction.AllocatableMemoryAvailable}, signals(p), "pods are limited to the allocatable memory")
	assert.Equal(t, 5*time.Minute, p.Transition)
	assert.False(t, p.NoLocalLimits)

	p, ignored, err = stores.EvictionPolicy(decode(t, `evictionHard: {containerfs.available: 10%, nodefs.available: 10%}
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 1m}
evictionMaxPodGracePeriod: 7
evictionPressureTransitionPeriod: 1m
enforceNodeAllocatable: [none]
localStorageCapacityIsolation: false
`))
	require.NoError(t, err)
	assert.Equal(t, []eviction.Signal{"containerfs.available"}, ignored, "it follows from nodefs or imagefs")
	assert.NotContains(t, signals(p), eviction.AllocatableMemoryAvailable)
	assert.Contains(t, signals(p), eviction.MemoryAvailable)
	assert.EqualValues(t, 7, p.MaxPodGracePeriod)
	assert.Equal(t, time.Minute, p.Transition)
	assert.True(t, p.NoLocalLimits)

	_, _, err = stores.EvictionPolicy(decode(t, "evictionHard: {memory.used: 1Gi}\n"))
	assert.ErrorContains(t, err, "memory.used")
}

func TestRequests(t *testing.T) {
	list := v1.ResourceList{"example.com/gpu": {}}
	for name, spec := range map[string]v1.PodSpec{
		"init":  {InitContainers: []v1.Container{{Resources: v1.ResourceRequirements{Limits: list}}}},
		"limit": {Containers: []v1.Container{{}, {Resources: v1.ResourceRequirements{Limits: list}}}},
		"both":  {Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: list}}}},
	} {
		assert.True(t, machine.Requests(&v1.Pod{Spec: spec}, "example.com/gpu"), name)
		assert.False(t, machine.Requests(&v1.Pod{Spec: spec}, "example.com/fpga"), name)
	}
}
