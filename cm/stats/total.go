package stats

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A total is the CPU time of a node: that of its pods, and of pods that have terminated, so
// that it does not decrease. The zero value is a node that has had no pods.
type total struct {
	spent uint64            // by pods that have terminated, in core-nanoseconds
	last  map[string]uint64 // of each pod, by UID
}

// add sets the CPU and memory of the node to the sums of those pods that were measured. A
// value that was measured for none remains nil.
func (t *total) add(n *statsapi.NodeStats, pods []statsapi.PodStats) {
	cpu, memory, now := new(statsapi.CPUStats), new(statsapi.MemoryStats), map[string]uint64{}
	for _, p := range pods {
		if c := p.CPU; c != nil {
			latest(&cpu.Time, c.Time)
			addTo(&cpu.UsageNanoCores, c.UsageNanoCores)
		}
		if c := p.CPU; c != nil && c.UsageCoreNanoSeconds != nil {
			now[p.PodRef.UID] = *c.UsageCoreNanoSeconds
		} else if before, ok := t.last[p.PodRef.UID]; ok { // not measured this time
			now[p.PodRef.UID] = before
		}
		if m := p.Memory; m != nil {
			addMemory(memory, m)
		}
	}
	for uid, before := range t.last {
		if now[uid] < before { // it has terminated, or was restarted
			t.spent += before
		}
	}
	t.last = now
	core := t.spent
	for _, v := range now {
		core += v
	}
	if core > 0 || len(now) > 0 {
		cpu.UsageCoreNanoSeconds = &core
	}
	if *cpu != (statsapi.CPUStats{}) {
		n.CPU = cpu
	}
	if *memory != (statsapi.MemoryStats{}) {
		n.Memory = memory
	}
}

// sumContainers sets the CPU and memory of a pod that the runtime did not report to the sums of its
// containers.
func sumContainers(p *statsapi.PodStats) {
	cpu, memory := new(statsapi.CPUStats), new(statsapi.MemoryStats)
	for i := range p.Containers {
		if c := p.Containers[i].CPU; c != nil {
			latest(&cpu.Time, c.Time)
			addTo(&cpu.UsageNanoCores, c.UsageNanoCores)
			addTo(&cpu.UsageCoreNanoSeconds, c.UsageCoreNanoSeconds)
		}
		if m := p.Containers[i].Memory; m != nil {
			addMemory(memory, m)
		}
	}
	if p.CPU == nil && *cpu != (statsapi.CPUStats{}) {
		p.CPU = cpu
	}
	if p.Memory == nil && *memory != (statsapi.MemoryStats{}) {
		p.Memory = memory
	}
}

func addMemory(to, m *statsapi.MemoryStats) {
	latest(&to.Time, m.Time)
	addTo(&to.WorkingSetBytes, m.WorkingSetBytes)
	addTo(&to.UsageBytes, m.UsageBytes)
	addTo(&to.RSSBytes, m.RSSBytes)
}

// addTo adds a measurement to a sum; nil is not measured.
func addTo(to **uint64, v *uint64) {
	if v == nil {
		return
	}
	if *to == nil {
		*to = new(uint64)
	}
	**to += *v
}

func latest(to *metav1.Time, t metav1.Time) {
	if t.After(to.Time) {
		*to = t
	}
}
