package podsource

import (
	"context"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory is a PodSource for pods that the program specifies. The zero value is ready to use and has
// not synced: Run delivers nothing before the first Set, Add or Remove. After a restart, several pods
// should be passed to one Set, since pods that are not in the first set are stopped. Set without
// arguments delivers an empty set.
//
// Safe for concurrent use. Changes do not wait for delivery: after several quick changes, Run
// delivers the last set.
type Memory struct {
	mu      sync.Mutex
	pods    []*v1.Pod     // guarded by mu; in the order they came; never changed in place
	synced  bool          // guarded by mu
	changed chan struct{} // guarded by mu; capacity 1
}

// Set replaces the set with copies of pods.
func (m *Memory) Set(pods ...*v1.Pod) {
	m.update(func([]*v1.Pod) []*v1.Pod { return copies(pods) })
}

// Add adds copies of pods to the set and replaces those with the same UID.
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

// Remove removes the pods with these UIDs from the set. Unknown UIDs are ignored.
func (m *Memory) Remove(uids ...types.UID) {
	m.update(func(now []*v1.Pod) []*v1.Pod {
		return slices.DeleteFunc(slices.Clone(now), func(p *v1.Pod) bool { return slices.Contains(uids, p.UID) })
	})
}

// Run delivers the set, and again after each change, until ctx is done. It must not be called
// concurrently; a later Run delivers the whole set first.
func (m *Memory) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	m.mu.Lock()
	wake := m.wakeLocked()
	m.mu.Unlock()
	select {
	case <-wake: // the first iteration delivers that change
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
	default: // Run has not received the last signal yet
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
