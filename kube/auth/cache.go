package auth

import (
	"context"
	"sync"
	"time"
)

// A cache keeps answers for a while, and asks about one thing once at a time: a
// hundred requests that come together with one token are one question.
type cache[V any] struct {
	size int

	mu      sync.Mutex // guards the field below; nobody is asked under it
	entries map[[32]byte]*entry[V]
}

// An entry is an answer, or the wait for one.
type entry[V any] struct {
	done    chan struct{} // closed when the fields below are set
	value   V
	err     error
	expires time.Time
}

// get returns the answer for key, from before or from ask, which also says for
// how long it may be given. Errors are not kept. cached tells where it is from.
func (c *cache[V]) get(ctx context.Context, key [32]byte, ask func() (V, time.Duration, error)) (v V, cached bool, err error) {
	for {
		e, mine := c.entry(key)
		if mine {
			var keep time.Duration
			e.value, keep, e.err = ask()
			e.expires = time.Now().Add(keep)
			if e.err != nil || keep <= 0 {
				c.drop(key, e)
			}
			close(e.done)
			return e.value, false, e.err
		}
		select {
		case <-ctx.Done():
			return v, false, ctx.Err()
		case <-e.done:
		}
		switch {
		case e.err != nil && ctx.Err() == nil && isContext(e.err):
			continue // it was the other's time that was over
		case e.err != nil:
			return v, false, e.err
		case time.Now().Before(e.expires):
			return e.value, true, nil
		}
		c.drop(key, e)
	}
}

// entry returns the one of key, and whether the caller has to fill it in.
func (c *cache[V]) entry(key [32]byte) (e *entry[V], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[key]; e != nil {
		return e, false
	}
	if c.entries == nil {
		c.entries = map[[32]byte]*entry[V]{}
	}
	if len(c.entries) >= c.size {
		c.makeRoomLocked()
	}
	e = &entry[V]{done: make(chan struct{})}
	c.entries[key] = e
	return e, true
}

// makeRoomLocked drops what has expired, and if that is not enough any one that
// is not being asked about.
func (c *cache[V]) makeRoomLocked() {
	now := time.Now()
	var any [32]byte
	found := false
	for key, e := range c.entries {
		select {
		case <-e.done:
		default:
			continue
		}
		if now.After(e.expires) {
			delete(c.entries, key)
			continue
		}
		any, found = key, true
	}
	if found && len(c.entries) >= c.size {
		delete(c.entries, any)
	}
}

func (c *cache[V]) drop(key [32]byte, e *entry[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] == e {
		delete(c.entries, key)
	}
}
