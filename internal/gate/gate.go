// Package gate waits for calls that run on goroutines of others.
package gate

import "sync"

// A Gate counts calls until it is closed. The zero value is open. Safe for concurrent
// use.
type Gate struct {
	mu     sync.Mutex
	closed bool // guarded by mu
	inside sync.WaitGroup
}

// Enter reports whether the gate is open. If so, the caller must call Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

// Leave ends a call that Enter admitted.
func (g *Gate) Leave() { g.inside.Done() }

// Close closes the gate and waits until every admitted call has left.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
