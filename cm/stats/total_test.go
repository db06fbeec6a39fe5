package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

func TestTheTotalOfANodeDoesNotDecrease(t *testing.T) {
	pod := func(uid string, core, memory uint64) statsapi.PodStats {
		return statsapi.PodStats{
			PodRef: statsapi.PodReference{UID: uid},
			CPU:    &statsapi.CPUStats{UsageCoreNanoSeconds: &core, UsageNanoCores: new(uint64(5))},
			Memory: &statsapi.MemoryStats{WorkingSetBytes: &memory},
		}
	}
	unmeasured := statsapi.PodStats{PodRef: statsapi.PodReference{UID: "a"}}
	var total total
	for i, step := range []struct {
		pods         []statsapi.PodStats
		core, memory uint64
	}{
		{pods: []statsapi.PodStats{pod("a", 10, 1), pod("b", 20, 2)}, core: 30, memory: 3},
		{pods: []statsapi.PodStats{pod("a", 15, 1), pod("b", 20, 4)}, core: 35, memory: 5},
		{pods: []statsapi.PodStats{unmeasured, pod("b", 21, 4)}, core: 36, memory: 4},
		{pods: []statsapi.PodStats{pod("b", 30, 4)}, core: 45, memory: 4},
		{pods: []statsapi.PodStats{pod("b", 1, 4)}, core: 46, memory: 4}, // restarted
	} {
		var n statsapi.NodeStats
		total.add(&n, step.pods)
		assert.Equal(t, step.core, *n.CPU.UsageCoreNanoSeconds, "step %d", i)
		assert.Equal(t, step.memory, *n.Memory.WorkingSetBytes, "step %d", i)
	}
	var n statsapi.NodeStats
	total.add(&n, nil)
	assert.Nil(t, n.Memory, "no pod was measured")
	assert.EqualValues(t, 46, *n.CPU.UsageCoreNanoSeconds, "of terminated pods")
}

func TestAPodThatTheRuntimeDoesNotMeasureIsTheSumOfItsContainers(t *testing.T) {
	container := func(core, memory uint64) statsapi.ContainerStats {
		return statsapi.ContainerStats{CPU: &statsapi.CPUStats{UsageCoreNanoSeconds: &core}, Memory: &statsapi.MemoryStats{WorkingSetBytes: &memory}}
	}
	p := statsapi.PodStats{Containers: []statsapi.ContainerStats{container(1, 10), container(2, 20), {}}}
	sumContainers(&p)
	assert.EqualValues(t, 3, *p.CPU.UsageCoreNanoSeconds)
	assert.EqualValues(t, 30, *p.Memory.WorkingSetBytes)
	assert.Nil(t, p.CPU.UsageNanoCores, "not measured")

	p.CPU.UsageCoreNanoSeconds = new(uint64(9))
	sumContainers(&p)
	assert.EqualValues(t, 9, *p.CPU.UsageCoreNanoSeconds, "reported by the runtime")
	none := statsapi.PodStats{Containers: []statsapi.ContainerStats{{}}}
	sumContainers(&none)
	assert.Nil(t, none.CPU)
	assert.Nil(t, none.Memory)
}
