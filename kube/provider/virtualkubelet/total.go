package virtualkubelet

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A total is the CPU time of a node: that of its pods, and of pods that have terminated, so
// that it does not decrease. The zero value is a node that has had no pods.
type total struct {
	mu    sync.Mutex
	spent uint64            // by pods that have terminated, in core-nanoseconds
	last  map[string]uint64 // of each pod, by UID
}

// add sets the CPU and memory of the node to the sums of those pods that were measured. A
// value that was measured for none remains nil.
func (t *total) add(n *statsv1alpha1.NodeStats, pods []statsv1alpha1.PodStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cpu, memory, now := new(statsv1alpha1.CPUStats), new(statsv1alpha1.MemoryStats), map[string]uint64{}
	for _, p := range pods {
		if c := p.CPU; c != nil {
			latest(&cpu.Time, c.Time)
			sum(&cpu.UsageNanoCores, c.UsageNanoCores)
		}
		if c := p.CPU; c != nil && c.UsageCoreNanoSeconds != nil {
			now[p.PodRef.UID] = *c.UsageCoreNanoSeconds
		} else if before, ok := t.last[p.PodRef.UID]; ok { // not measured this time
			now[p.PodRef.UID] = before
		}
		if m := p.Memory; m != nil {
			latest(&memory.Time, m.Time)
			sum(&memory.WorkingSetBytes, m.WorkingSetBytes)
			sum(&memory.UsageBytes, m.UsageBytes)
			sum(&memory.RSSBytes, m.RSSBytes)
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
	if *cpu != (statsv1alpha1.CPUStats{}) {
		n.CPU = cpu
	}
	if *memory != (statsv1alpha1.MemoryStats{}) {
		n.Memory = memory
	}
}

// sum adds a measurement to a sum; nil is not measured.
func sum(to **uint64, v *uint64) {
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
