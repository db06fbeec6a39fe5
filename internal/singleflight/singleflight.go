// Package singleflight suppresses duplicate calls, like golang.org/x/sync/singleflight.
// Unlike there, a caller returns when its context is done, and the call is canceled
// when no caller waits for it.
package singleflight

import (
	"context"
	"sync"
)

// A Group shares the results of concurrent calls with the same key. The zero value
// is ready to use. Safe for concurrent use.
type Group[T any] struct {
	// WaitForCanceled makes the last caller wait until the call that it canceled has
	// returned.
	WaitForCanceled bool

	mu    sync.Mutex
	calls map[string]*call[T] // guarded by mu
}

type call[T any] struct {
	waiters int // guarded by Group.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when value and err are set

	value T
	err   error
}

// Do returns the result of fn, which may be that of a concurrent call with the same key.
// fn runs on its own goroutine, with the values but not the deadline of the first
// caller's context. Do returns ctx.Err() if ctx is done first; the last caller to do so
// cancels fn, and a later Do begins another call.
func (g *Group[T]) Do(ctx context.Context, key string, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	c := g.join(ctx, key, fn)
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	c.waiters--
	last := c.waiters == 0
	if last {
		g.removeLocked(key, c)
	}
	g.mu.Unlock()
	if last {
		c.cancel()
		if g.WaitForCanceled {
			<-c.done
		}
	}
	return zero, ctx.Err()
}

// join returns the running call of key, or starts one.
func (g *Group[T]) join(ctx context.Context, key string, fn func(context.Context) (T, error)) *call[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.calls[key]
	if !ok {
		var shared context.Context
		c = &call[T]{done: make(chan struct{})}
		shared, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if g.calls == nil {
			g.calls = map[string]*call[T]{}
		}
		g.calls[key] = c
		go func() {
			defer close(c.done)
			defer c.cancel()
			c.value, c.err = fn(shared)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.removeLocked(key, c)
		}()
	}
	c.waiters++
	return c
}

// removeLocked prevents further callers from joining c.
func (g *Group[T]) removeLocked(key string, c *call[T]) {
	if g.calls[key] == c {
		delete(g.calls, key)
	}
}
