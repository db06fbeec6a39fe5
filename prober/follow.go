package prober

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Follow tells handle each new result, as Run tells Config.Changed, until ctx
// ends; then it returns nil. It begins with the results that there are. Each
// follower has a place of its own in what happens: while handle blocks, no
// other is delayed, and of several changes of one result it is told the last.
// So no queue is ever full (prober-63), and none grows beyond the number of
// probes.
//
// handle is called on the goroutine of Follow, in order. An error means that it
// is nil.
func (m *Manager) Follow(ctx context.Context, handle func(Change)) error {
	if handle == nil {
		return errors.New("prober: the handle of Follow is nil")
	}
	f := &follower{edge: make(chan struct{}, 1), news: make(map[key]Change)}
	m.mu.Lock()
	m.followers = append(m.followers, f)
	for _, p := range m.pods {
		for _, w := range p.workers {
			if w.state.known {
				f.note(w)
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
		case <-f.edge:
		}
	}
}

// A follower is somebody who is told of changes. The Manager's mu guards it.
type follower struct {
	edge  chan struct{} // of capacity 1: there is news
	order []key
	news  map[key]Change
}

// A key is what a worker is known by (prober-1).
type key struct {
	uid       types.UID
	container string
	kind      Kind
}

// note notes the result of w.
func (f *follower) note(w *worker) {
	k := key{w.of.uid, w.container.Name, w.kind}
	if _, ok := f.news[k]; !ok {
		f.order = append(f.order, k)
	}
	f.news[k] = Change{UID: k.uid, Container: k.container, ContainerID: w.state.id, Kind: k.kind, Result: w.state.result}
	edge(f.edge)
}

// take returns the oldest change that was not told yet.
func (f *follower) take() (Change, bool) {
	if len(f.order) == 0 {
		return Change{}, false
	}
	k := f.order[0]
	f.order = f.order[1:]
	c := f.news[k]
	delete(f.news, k)
	return c, true
}

// tellLocked tells all followers the result of w.
func (m *Manager) tellLocked(w *worker) {
	for _, f := range m.followers {
		f.note(w)
	}
	m.store.note(w)
}
