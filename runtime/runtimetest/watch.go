package runtimetest

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// A watcher is one call of Watch. It collects the UIDs of changed pods, so that
// a slow callback loses no pod and memory is bounded by the number of pods.
type watcher struct {
	signal chan struct{} // buffered, size 1: changed is not empty
	// changed has each UID once, oldest change first; in is the same as a set.
	// Both are guarded by Runtime.mu.
	changed []types.UID
	in      map[types.UID]struct{}
}

// Watch calls changed for each pod with a container or sandbox that is created,
// exits, stops or is removed. See [runtime.Watcher].
func (r *Runtime) Watch(ctx context.Context, changed func(uid types.UID)) error {
	w := &watcher{signal: make(chan struct{}, 1), in: map[types.UID]struct{}{}}
	err := r.call(ctx, "Watch", "", func() error {
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

// changedLocked notifies all watchers.
func (r *Runtime) changedLocked(uid types.UID) {
	if len(r.snapshots) > 0 {
		r.snapshotLocked()
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
