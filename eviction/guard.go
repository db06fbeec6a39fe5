package eviction

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// returnWait is how long a function may take to return after its context has ended.
const returnWait = 5 * time.Second

// A guard calls one of the functions that a Manager measures with, so that the pass
// goes on if that does not return: on a goroutine of its own, of which there is one at
// a time. The zero value is ready.
type guard struct {
	mu    sync.Mutex
	began time.Time // of the call that has not returned; zero: there is none
}

// guarded returns what call does. It returns an error if call has not returned
// shortly after its context, which ends after timeout, or if an earlier call has not
// returned yet. Call's result is then dropped.
func guarded[T any](ctx context.Context, g *guard, timeout time.Duration, call func(context.Context) (T, error)) (got T, err error) {
	g.mu.Lock()
	if began := g.began; !began.IsZero() {
		g.mu.Unlock()
		return got, fmt.Errorf("an earlier call has not returned for %v", time.Since(began))
	}
	g.began = time.Now()
	g.mu.Unlock()

	type answer struct {
		got T
		err error
	}
	answers := make(chan answer, 1)
	inner, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	go func() {
		var a answer
		a.got, a.err = call(inner)
		g.mu.Lock()
		g.began = time.Time{}
		g.mu.Unlock()
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.got, a.err
	case <-inner.Done():
	}
	wait := time.NewTimer(returnWait)
	defer wait.Stop()
	select {
	case a := <-answers:
		return a.got, a.err
	case <-wait.C:
		return got, fmt.Errorf("not returned %v after its context ended", returnWait)
	}
}
