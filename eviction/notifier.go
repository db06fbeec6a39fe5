package eviction

import (
	"context"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A Notifier tells at once when the memory of a control group runs low. Package
// eviction/notify has those of Linux.
type Notifier interface {
	// Run calls low each time that more is used than one of the levels, or that
	// there is other reason to look, until ctx ends (nil), or it cannot go on.
	// low does not block.
	Run(ctx context.Context, low func()) error

	// Update says what the levels are: bytes in use, the page cache included. It
	// is called from the goroutine of the pass, also while Run runs, and must
	// not wait for that.
	Update(levels []int64) error
}

// listen has a Notifier ask for passes. Without it the next one comes in time.
func (m *Manager) listen(ctx context.Context, signal Signal, n Notifier) {
	err := n.Run(ctx, func() {
		select {
		case m.wake <- struct{}{}:
		default: // one is asked for already
		}
	})
	if err != nil && ctx.Err() == nil {
		m.cfg.Logger.Warn("low memory is no longer told of at once, only in each pass", "signal", signal, "err", err)
	}
}

// refreshNotifiers tells the Notifiers their levels by new figures, each 10
// seconds (ev-17, ev-58).
func (m *Manager) refreshNotifiers(in Inputs) {
	if len(m.cfg.Notifiers) == 0 || !m.notified.IsZero() && in.Now.Sub(m.notified) < refreshPeriod {
		return
	}
	m.notified = in.Now
	for _, signal := range []Signal{MemoryAvailable, AllocatableMemoryAvailable} {
		n := m.cfg.Notifiers[signal]
		levels := Levels(in.Policy.Thresholds, signal, in.Summary, in.Memory)
		if n == nil || len(levels) == 0 {
			continue
		}
		if err := n.Update(levels); err != nil {
			m.cfg.Logger.Warn("the level of low memory cannot be set", "signal", signal, "err", err)
		}
	}
}

// Levels returns at how many bytes in use the thresholds of a memory signal are
// met. What the kernel counts as used holds a page cache that it would give back:
// that much more may be used (ev-58). figure, if it is not nil, is what
// memory.available goes by; it does not tell of a cache, so that its levels are
// told of early rather than late.
func Levels(thresholds []Threshold, signal Signal, summary *statsapi.Summary, figure *MemoryFigure) []int64 {
	if figure != nil && signal == MemoryAvailable {
		if figure.Err != nil {
			return nil
		}
		return levels(thresholds, signal, figure.Capacity, 0)
	}
	if summary == nil {
		return nil
	}
	memory := summary.Node.Memory
	if signal == AllocatableMemoryAvailable {
		memory = nil
		for i := range summary.Node.SystemContainers {
			if c := &summary.Node.SystemContainers[i]; c.Name == statsapi.SystemContainerPods {
				memory = c.Memory
			}
		}
	}
	if memory == nil || memory.AvailableBytes == nil || memory.WorkingSetBytes == nil {
		return nil
	}
	used := figureOf(memory.WorkingSetBytes)
	capacity := add(figureOf(memory.AvailableBytes), used)
	cache := int64(0)
	if memory.UsageBytes != nil {
		cache = max(sub(figureOf(memory.UsageBytes), used), 0)
	}
	return levels(thresholds, signal, capacity, cache)
}

func levels(thresholds []Threshold, signal Signal, capacity, cache int64) (all []int64) {
	for _, t := range thresholds {
		if level := add(sub(capacity, t.Value.Of(capacity)), cache); t.Signal == signal && level > 0 {
			all = append(all, level)
		}
	}
	return all
}
