package prober

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Follow calls handle with each new result, starting with the current ones. It blocks until ctx
// is done and returns nil. Followers are independent: while handle blocks, no other follower is
// delayed, and only the last of several changes of the same result is delivered. Queues are
// therefore bounded by the number of probes.
//
// handle is called on the goroutine of Follow, in order. Follow returns an error if it is nil.
func (m *Manager) Follow(ctx context.Context, handle func(Change)) error {
	if handle == nil {
		return errors.New("prober: Follow: handle is nil")
	}
	f := &follower{wake: make(chan struct{}, 1), pending: make(map[key]Change)}
	m.mu.Lock()
	m.followers = append(m.followers, f)
	for _, p := range m.pods {
		for _, w := range p.workers {
			if w.state.hasResult {
				f.add(w)
			}
		}
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.followers = slices.DeleteFunc(m.followers, func(other *follower) bool { return other == f })
	}()
	for {
		for ctx.Err() == nil {
			m.mu.Lock()
			change, ok := f.take()
			m.mu.Unlock()
			if !ok {
				break
			}
			handle(change)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
	}
}

// A follower is a call of Follow. The Manager's mu guards it.
type follower struct {
	wake    chan struct{} // of capacity 1: a change is pending
	order   []key
	pending map[key]Change
}

// A key identifies a worker.
type key struct {
	uid       types.UID
	container string
	kind      Kind
}

// add adds the result of w to the pending changes.
func (f *follower) add(w *worker) {
	k := key{w.pod.uid, w.container.Name, w.kind}
	if _, ok := f.pending[k]; !ok {
		f.order = append(f.order, k)
	}
	f.pending[k] = Change{UID: k.uid, Container: k.container, ContainerID: w.state.id, Kind: k.kind, Result: w.state.result}
	wake(f.wake)
}

// take returns the oldest pending change.
func (f *follower) take() (Change, bool) {
	if len(f.order) == 0 {
		return Change{}, false
	}
	k := f.order[0]
	f.order = f.order[1:]
	c := f.pending[k]
	delete(f.pending, k)
	return c, true
}

// notifyLocked delivers the result of w to all followers and the store.
func (m *Manager) notifyLocked(w *worker) {
	for _, f := range m.followers {
		f.add(w)
	}
	m.store.changed(w)
}
