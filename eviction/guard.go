package eviction

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// returnWait is how long a function may take to return after its context was canceled.
const returnWait = 5 * time.Second

// A guard calls a measuring function of a Config on a goroutine of its own, so that the pass does
// not block if the function does not return. There is one goroutine at a time. The zero
// value is ready.
type guard struct {
	mu    sync.Mutex
	began time.Time // of the call that has not returned; zero: no call
}

// guarded returns the results of call. It returns an error if call has not returned
// returnWait after its context, which has the given timeout, was canceled, or if an earlier
// call has not returned yet. The result of call is then dropped.
func guarded[T any](ctx context.Context, g *guard, timeout time.Duration, call func(context.Context) (T, error)) (got T, err error) {
	g.mu.Lock()
	if began := g.began; !began.IsZero() {
		g.mu.Unlock()
		return got, fmt.Errorf("an earlier call has not returned for %v", time.Since(began))
	}
	g.began = time.Now()
	g.mu.Unlock()

	type result struct {
		got T
		err error
	}
	results := make(chan result, 1)
	inner, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	go func() {
		var a result
		a.got, a.err = call(inner)
		g.mu.Lock()
		g.began = time.Time{}
		g.mu.Unlock()
		results <- a
	}()
	select {
	case a := <-results:
		return a.got, a.err
	case <-inner.Done():
	}
	wait := time.NewTimer(returnWait)
	defer wait.Stop()
	select {
	case a := <-results:
		return a.got, a.err
	case <-wait.C:
		return got, fmt.Errorf("not returned %v after its context was canceled", returnWait)
	}
}
