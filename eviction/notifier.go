package eviction

import (
	"context"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A Notifier reports low memory of a cgroup as soon as it occurs. Package eviction/notify
// implements it for Linux.
type Notifier interface {
	// Run calls low each time the usage exceeds one of the levels, or when a pass is
	// advisable for another reason. It blocks until ctx is done and returns nil, or returns
	// an error if it cannot continue. low does not block.
	Run(ctx context.Context, low func()) error

	// Update sets the levels, in bytes of usage including page cache. It is called on the
	// goroutine of the pass, also while Run runs, and must not wait for Run.
	Update(levels []int64) error
}

// listen requests a pass for each notification until ctx is done.
func (m *Manager) listen(ctx context.Context, signal Signal, n Notifier) {
	err := n.Run(ctx, func() {
		select {
		case m.wake <- struct{}{}:
		default: // a request is pending
		}
	})
	if err != nil && ctx.Err() == nil {
		m.cfg.Logger.Warn("Memory notifier failed; low memory is detected by periodic passes only", "signal", signal, "err", err)
	}
}

// refreshNotifiers updates the levels of the Notifiers every 10 seconds.
func (m *Manager) refreshNotifiers(in Inputs) {
	notifiers := m.cfg.Notifiers
	if len(notifiers) == 0 || !m.notified.IsZero() && in.Now.Sub(m.notified) < refreshPeriod {
		return
	}
	m.notified = in.Now
	for _, signal := range []Signal{MemoryAvailable, AllocatableMemoryAvailable} {
		n := notifiers[signal]
		levels := memoryLevels(in.Policy.Thresholds, signal, in.Summary, in.Memory)
		if n == nil || len(levels) == 0 {
			continue
		}
		if err := n.Update(levels); err != nil {
			m.cfg.Logger.Warn("Failed to set memory notification levels; will retry", "signal", signal, "err", err)
		}
	}
}

// memoryLevels returns the usage in bytes at which the thresholds of a memory signal are
// met. The kernel's usage includes reclaimable page cache, which is therefore added to each
// level (rule ev-58). memory, if it is not nil, measures memory.available; it has no page
// cache, so the notification may be early but not late.
func memoryLevels(thresholds []Threshold, signal Signal, summary *statsapi.Summary, memory *Observation) []int64 {
	if memory != nil && signal == MemoryAvailable {
		if memory.Err != nil {
			return nil
		}
		return levelsOf(thresholds, signal, memory.Capacity, 0)
	}
	if summary == nil {
		return nil
	}
	stats := summary.Node.Memory
	if signal == AllocatableMemoryAvailable {
		stats = nil
		for i := range summary.Node.SystemContainers {
			if c := &summary.Node.SystemContainers[i]; c.Name == statsapi.SystemContainerPods {
				stats = c.Memory
			}
		}
	}
	if stats == nil || stats.AvailableBytes == nil || stats.WorkingSetBytes == nil {
		return nil
	}
	used := amount(stats.WorkingSetBytes)
	capacity := add(amount(stats.AvailableBytes), used)
	cache := int64(0)
	if stats.UsageBytes != nil {
		cache = max(sub(amount(stats.UsageBytes), used), 0)
	}
	return levelsOf(thresholds, signal, capacity, cache)
}

func levelsOf(thresholds []Threshold, signal Signal, capacity, cache int64) (all []int64) {
	for _, t := range thresholds {
		if level := add(sub(capacity, t.Value.Of(capacity)), cache); t.Signal == signal && level > 0 {
			all = append(all, level)
		}
	}
	return all
}
