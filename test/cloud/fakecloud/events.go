package fakecloud

import (
	"context"
	"maps"
)

// A watcher collects changed machines, not changes, so that a slow one needs bounded memory
// and misses no machine.
type watcher struct {
	signal chan struct{} // capacity 1: changed is not empty
	// changed machines, guarded by Cloud.mu.
	changed map[string]map[string]string // tags by ID
}

// Events implements [cloud.Eventer].
func (c *Cloud) Events(ctx context.Context, changed func(tags map[string]string)) error {
	w := &watcher{signal: make(chan struct{}, 1), changed: map[string]map[string]string{}}
	c.mu.Lock()
	if c.watchers == nil {
		c.watchers = map[*watcher]struct{}{}
	}
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.signal:
		}
		c.mu.Lock()
		news := w.changed
		w.changed = map[string]map[string]string{}
		c.mu.Unlock()
		for _, tags := range news {
			changed(tags)
		}
	}
}

func (c *Cloud) changedLocked(m *machine) {
	for w := range c.watchers {
		w.changed[m.ID] = maps.Clone(m.Tags)
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}
