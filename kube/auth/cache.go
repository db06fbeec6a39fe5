package auth

import (
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A cache remembers the answers of reviews. Concurrent requests for one key share a
// review. Good and bad answers are kept apart, so that any number of bad tokens
// evicts no good one.
type cache[V any] struct {
	good, bad answers[V] // each has a lock of its own: cached answers do not wait for mu

	mu       sync.Mutex // guards the fields below; must not be held during a review
	pending  map[[32]byte]*review[V]
	reviews  gate // reviews that are under way
	requests gate // requests that wait for a review
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
		if v, ok := c.cached(key); ok {
			return v, !waits, nil
		}
		c.mu.Lock()
		if v, ok := c.cached(key); ok { // a review has just ended
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
		if r.err == nil && a.ttl > 0 {
			into := &c.bad
			if a.good {
				into = &c.good
			}
			into.put(key, a.value, time.Now().Add(a.ttl))
		}
		c.mu.Lock()
		delete(c.pending, key)
		c.reviews.leave(origin)
		c.mu.Unlock()
		close(r.done)
	}()
	r.err = errReviewPanicked
	a, r.err = ask()
	r.value, r.abandoned = a.value, r.err != nil && ctx.Err() != nil
}

func (c *cache[V]) cached(key [32]byte) (v V, ok bool) {
	now := time.Now()
	if v, ok = c.good.get(key, now); !ok {
		v, ok = c.bad.get(key, now)
	}
	return v, ok
}

// answers are at most size of them. Safe for concurrent use; get does not wait for another
// get, however many there are.
type answers[V any] struct {
	size int

	mu    sync.RWMutex // guards the field below
	byKey map[[32]byte]*stored[V]
}

type stored[V any] struct {
	value   V
	expires time.Time
	used    atomic.Int64 // when it was returned last, in nanoseconds since 1970
}

func (a *answers[V]) get(key [32]byte, now time.Time) (v V, ok bool) {
	a.mu.RLock()
	s := a.byKey[key]
	a.mu.RUnlock()
	if s == nil || !now.Before(s.expires) {
		return v, false
	}
	s.used.Store(now.UnixNano())
	return s.value, true
}

// put stores an answer. Where there is no room, those that have expired go, or else the one
// that was used least recently.
func (a *answers[V]) put(key [32]byte, v V, expires time.Time) {
	now := time.Now()
	s := &stored[V]{value: v, expires: expires}
	s.used.Store(now.UnixNano())
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[[32]byte]*stored[V]{}
	}
	delete(a.byKey, key)
	if len(a.byKey) >= a.size {
		maps.DeleteFunc(a.byKey, func(_ [32]byte, s *stored[V]) bool { return !now.Before(s.expires) })
	}
	for len(a.byKey) >= a.size && len(a.byKey) > 0 {
		a.removeOldestLocked()
	}
	a.byKey[key] = s
}

func (a *answers[V]) removeOldestLocked() {
	var oldest [32]byte
	at := int64(math.MaxInt64)
	for key, s := range a.byKey {
		if used := s.used.Load(); used < at {
			oldest, at = key, used
		}
	}
	delete(a.byKey, oldest)
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
