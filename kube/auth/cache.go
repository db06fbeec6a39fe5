package auth

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// A cache remembers the answers of reviews. Concurrent requests for one key share a
// review. Good and bad answers are kept apart, so that any number of bad tokens
// evicts no good one.
type cache[V any] struct {
	mu        sync.Mutex // guards the fields below; must not be held during a review
	good, bad answers[V]
	pending   map[[32]byte]*review[V]
	reviews   gate // reviews that are under way
	requests  gate // requests that wait for a review
}

// Bounds on what waits for the API server, in all and per origin: the remote host of a
// token, the user of an access review. Those per origin keep one origin from taking
// all of it. Reviews count distinct keys; requests also count those that share one.
const (
	maxReviews          = 64
	maxReviewsByOrigin  = 16
	maxRequests         = 1024
	maxRequestsByOrigin = 256
	reviewTimeout       = 10 * time.Second // of one call
)

// errReviewPanicked is what requests get that share a review whose client panicked.
var errReviewPanicked = errors.New("the review panicked")

func newCache[V any](size int) *cache[V] {
	return &cache[V]{
		good: answers[V]{size: size}, bad: answers[V]{size: size},
		pending:  map[[32]byte]*review[V]{},
		reviews:  gate{max: maxReviews, perOrigin: maxReviewsByOrigin},
		requests: gate{max: maxRequests, perOrigin: maxRequestsByOrigin},
	}
}

// An answer is the outcome of a review, and how long it may be used.
type answer[V any] struct {
	value V
	good  bool
	ttl   time.Duration
}

// A review is an answer that is being waited for.
type review[V any] struct {
	done      chan struct{} // closed when the fields below are set
	value     V
	err       error
	abandoned bool // the request that asked ended before the answer
}

// get returns the answer for key: a cached one at once, otherwise that of ask, which
// is called for one request at a time. Errors are not cached. cached reports whether
// the answer did not need a review. It returns ErrTooManyReviews if too much is
// pending in all or for the origin.
func (c *cache[V]) get(ctx context.Context, key [32]byte, origin string, ask func() (answer[V], error)) (v V, cached bool, err error) {
	waits := false
	defer func() {
		if waits {
			c.mu.Lock()
			c.requests.leave(origin)
			c.mu.Unlock()
		}
	}()
	for {
		c.mu.Lock()
		if v, ok := c.cachedLocked(key); ok {
			c.mu.Unlock()
			return v, !waits, nil
		}
		r, asks := c.pending[key], false
		if waits = waits || c.requests.enter(origin); waits && r == nil {
			if asks = c.reviews.enter(origin); asks {
				r = &review[V]{done: make(chan struct{})}
				c.pending[key] = r
			}
		}
		c.mu.Unlock()
		switch {
		case !waits || r == nil:
			return v, false, ErrTooManyReviews
		case asks:
			c.carryOut(ctx, key, origin, r, ask)
			return r.value, false, r.err
		}
		select {
		case <-ctx.Done():
			return v, false, ctx.Err()
		case <-r.done:
		}
		if !r.abandoned || ctx.Err() != nil {
			return r.value, false, r.err
		}
	}
}

// carryOut asks, stores a good or bad answer, and wakes the requests that share r.
func (c *cache[V]) carryOut(ctx context.Context, key [32]byte, origin string, r *review[V], ask func() (answer[V], error)) {
	var a answer[V]
	defer func() { // also if ask panics, which net/http recovers
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, key)
		c.reviews.leave(origin)
		if r.err == nil && a.ttl > 0 {
			into := &c.bad
			if a.good {
				into = &c.good
			}
			into.put(key, a.value, time.Now().Add(a.ttl))
		}
		close(r.done)
	}()
	r.err = errReviewPanicked
	a, r.err = ask()
	r.value, r.abandoned = a.value, r.err != nil && ctx.Err() != nil
}

func (c *cache[V]) cachedLocked(key [32]byte) (v V, ok bool) {
	now := time.Now()
	if v, ok = c.good.get(key, now); !ok {
		v, ok = c.bad.get(key, now)
	}
	return v, ok
}

// answers are the most recently used answers, size at most. Must not be used
// concurrently.
type answers[V any] struct {
	size   int
	byKey  map[[32]byte]*list.Element
	recent list.List // of *stored[V], most recently used first
}

type stored[V any] struct {
	key     [32]byte
	value   V
	expires time.Time
}

func (a *answers[V]) get(key [32]byte, now time.Time) (v V, ok bool) {
	e := a.byKey[key]
	if e == nil {
		return v, false
	}
	s := e.Value.(*stored[V])
	if !now.Before(s.expires) {
		a.remove(e)
		return v, false
	}
	a.recent.MoveToFront(e)
	return s.value, true
}

func (a *answers[V]) put(key [32]byte, v V, expires time.Time) {
	if e := a.byKey[key]; e != nil {
		a.remove(e)
	}
	if a.byKey == nil {
		a.byKey = map[[32]byte]*list.Element{}
	}
	a.byKey[key] = a.recent.PushFront(&stored[V]{key, v, expires})
	if len(a.byKey) > a.size {
		a.remove(a.recent.Back())
	}
}

func (a *answers[V]) remove(e *list.Element) {
	delete(a.byKey, a.recent.Remove(e).(*stored[V]).key)
}

// A gate bounds a number, in all and per origin. Must not be used concurrently.
type gate struct {
	max, perOrigin int
	inside         int
	byOrigin       map[string]int
}

// enter reports whether there is room; leave must be called if so.
func (g *gate) enter(origin string) bool {
	if g.inside >= g.max || g.byOrigin[origin] >= g.perOrigin {
		return false
	}
	if g.byOrigin == nil {
		g.byOrigin = map[string]int{}
	}
	g.inside++
	g.byOrigin[origin]++
	return true
}

func (g *gate) leave(origin string) {
	g.inside--
	if g.byOrigin[origin]--; g.byOrigin[origin] == 0 {
		delete(g.byOrigin, origin)
	}
}
