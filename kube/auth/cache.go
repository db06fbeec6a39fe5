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

// A cache caches the results of reviews. Concurrent requests for one key share a review.
// Good and bad results are separate, so that bad tokens cannot evict good ones.
type cache[V any] struct {
	good, bad answers[V] // each has a lock of its own: cached answers do not wait for mu

	mu       sync.Mutex // guards the fields below; must not be held during a review
	pending  map[[32]byte]*review[V]
	reviews  gate // pending reviews
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

// An answer is the result of a review, and the duration for which it is cached.
type answer[V any] struct {
	value V
	good  bool
	ttl   time.Duration
}

// A review is a pending review.
type review[V any] struct {
	done      chan struct{} // closed when the fields below are set
	value     V
	err       error
	abandoned bool // the request that made the review was canceled before the answer
}

// get returns the answer for key: a cached one immediately, otherwise that of do, which
// is called for one request at a time. Errors are not cached. cached reports whether
// the answer did not need a review. It returns ErrTooManyReviews if too much is
// pending in all or for the origin.
func (c *cache[V]) get(ctx context.Context, key [32]byte, origin string, do func() (answer[V], error)) (v V, cached bool, err error) {
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
		r, starts := c.pending[key], false
		if waits = waits || c.requests.enter(origin); waits && r == nil {
			if starts = c.reviews.enter(origin); starts {
				r = &review[V]{done: make(chan struct{})}
				c.pending[key] = r
			}
		}
		c.mu.Unlock()
		switch {
		case !waits || r == nil:
			return v, false, ErrTooManyReviews
		case starts:
			c.carryOut(ctx, key, origin, r, do)
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

// carryOut calls do, caches its answer, and wakes the requests that share r.
func (c *cache[V]) carryOut(ctx context.Context, key [32]byte, origin string, r *review[V], do func() (answer[V], error)) {
	var a answer[V]
	defer func() { // also if do panics, which net/http recovers
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
	a, r.err = do()
	r.value, r.abandoned = a.value, r.err != nil && ctx.Err() != nil
}

func (c *cache[V]) cached(key [32]byte) (v V, ok bool) {
	now := time.Now()
	if v, ok = c.good.get(key, now); !ok {
		v, ok = c.bad.get(key, now)
	}
	return v, ok
}

// answers caches at most size answers. Safe for concurrent use; concurrent gets do not
// block each other.
type answers[V any] struct {
	size int

	mu    sync.RWMutex // guards the field below
	byKey map[[32]byte]*stored[V]
}

type stored[V any] struct {
	value   V
	expires time.Time
	used    atomic.Int64 // last use, in nanoseconds since 1970
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

// put stores an answer. If the cache is full, expired answers are removed, or else the
// least recently used one.
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

// A gate bounds a number, in total and per origin. It must not be used concurrently.
type gate struct {
	max, perOrigin int
	inside         int
	byOrigin       map[string]int
}

// enter increments the number, unless a bound is reached; then it reports false. leave must
// be called if it reports true.
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
