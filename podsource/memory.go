package podsource

import (
	"context"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory is a PodSource for pods that the program itself decides on. The zero
// value is ready, and not synced: Run says nothing before the first Set, Add
// or Remove. A program that starts again and wants several pods says so in one
// Set, or those that Add has not named yet are stopped in between. Set without
// pods means that none is wanted.
//
// All methods may be called from any goroutine. A change never waits for its
// delivery: of several quick ones, Run delivers the last state.
type Memory struct {
	mu      sync.Mutex
	pods    []*v1.Pod     // guarded by mu; in the order they came; never changed in place
	synced  bool          // guarded by mu; someone has said something
	changed chan struct{} // made under mu; capacity 1: "look again"
}

// Set makes pods the whole set. They are copied.
func (m *Memory) Set(pods ...*v1.Pod) {
	m.update(func([]*v1.Pod) []*v1.Pod { return copies(pods) })
}

// Add adds pods to the set, in place of those with the same UID. They are
// copied.
func (m *Memory) Add(pods ...*v1.Pod) {
	m.update(func(now []*v1.Pod) []*v1.Pod {
		now = slices.Clone(now)
		for _, pod := range copies(pods) {
			if i := slices.IndexFunc(now, func(p *v1.Pod) bool { return p.UID == pod.UID }); i >= 0 {
				now[i] = pod
			} else {
				now = append(now, pod)
			}
		}
		return now
	})
}

// Remove takes the pods with these UIDs out of the set. Those it does not hold
// are ignored.
func (m *Memory) Remove(uids ...types.UID) {
	m.update(func(now []*v1.Pod) []*v1.Pod {
		return slices.DeleteFunc(slices.Clone(now), func(p *v1.Pod) bool { return slices.Contains(uids, p.UID) })
	})
}

// Run delivers the set, and again whenever it changes. One Run at a time; the
// next one begins with the whole set.
func (m *Memory) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	m.mu.Lock()
	wake := m.wakeLocked()
	m.mu.Unlock()
	select {
	case <-wake: // the first look below sees what this was about
	default:
	}
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return nil
			case <-wake:
			}
		}
		m.mu.Lock()
		pods, synced := m.pods, m.synced
		m.mu.Unlock()
		if ctx.Err() != nil {
			return nil
		}
		if synced {
			set(slices.Clone(pods))
		}
	}
}

func (m *Memory) update(change func([]*v1.Pod) []*v1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods, m.synced = change(m.pods), true
	select {
	case m.wakeLocked() <- struct{}{}:
	default: // Run has yet to look; it will see this change too
	}
}

// wakeLocked returns the channel, made on first use so that the zero value
// works.
func (m *Memory) wakeLocked() chan struct{} {
	if m.changed == nil {
		m.changed = make(chan struct{}, 1)
	}
	return m.changed
}

// copies returns deep copies of pods, without nil ones.
func copies(pods []*v1.Pod) []*v1.Pod {
	out := make([]*v1.Pod, 0, len(pods))
	for _, pod := range pods {
		if pod != nil {
			out = append(out, pod.DeepCopy())
		}
	}
	return out
}
