package runtimetest

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// A watcher is one Watch. It holds which pods changed, not what or how often:
// a slow reader costs nothing and loses nothing.
type watcher struct {
	signal chan struct{} // of one: something is in changed
	// changed is guarded by Runtime.mu; each UID once, oldest change first;
	// in says which are there.
	changed []types.UID
	in      map[types.UID]struct{}
}

// Watch calls changed for each pod of which something is created, exits, stops
// or is removed. See [runtime.Watcher].
func (r *Runtime) Watch(ctx context.Context, changed func(uid types.UID)) error {
	w := &watcher{signal: make(chan struct{}, 1), in: map[types.UID]struct{}{}}
	err := r.call(ctx, Call{Method: "Watch"}, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.watchers == nil {
			r.watchers = map[*watcher]struct{}{}
		}
		r.watchers[w] = struct{}{}
		return nil
	})
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
	}()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.signal:
		}
		r.mu.Lock()
		uids := w.changed
		w.changed = nil
		clear(w.in)
		r.mu.Unlock()
		for _, uid := range uids {
			changed(uid)
		}
	}
}

// changedLocked gives the hint to all who watch.
func (r *Runtime) changedLocked(uid types.UID) {
	if len(r.past) > 0 {
		r.rememberLocked()
	}
	for w := range r.watchers {
		if _, ok := w.in[uid]; !ok {
			w.in[uid] = struct{}{}
			w.changed = append(w.changed, uid)
		}
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}
