package cri

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// turns limits the calls of one kind that are in progress. Callers take turns in the order in which
// they came. A slow call no longer counts, so that calls that hang delay others by seconds only.
// The zero value has the limit of its pace. Safe for concurrent use.
type turns struct {
	fixed int // the limit; zero: that of the pace; negative: none

	// mu guards the fields below.
	mu      sync.Mutex
	pace    pace
	busy    int // calls that count
	waiting []*waiter
}

// A waiter waits for its turn.
type waiter struct {
	granted chan struct{} // closed when turn is set
	turn    *turn
}

// A turn is one call in progress.
type turn struct {
	of    *turns // nil: there is no limit
	began time.Time
	nth   int         // of the calls in progress when it began
	slow  *time.Timer // ends the turn
	ended bool        // guarded by turns.mu
}

// take blocks until the caller may make a call. It must call end after that. It returns the error
// of ctx if that is done before.
func (t *turns) take(ctx context.Context) (*turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.fixed < 0 {
		return new(turn), nil
	}
	t.mu.Lock()
	w := &waiter{granted: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.grantLocked()
	t.mu.Unlock()
	select {
	case <-w.granted:
		return w.turn, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.turn != nil {
		t.endLocked(w.turn)
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(o *waiter) bool { return o == w })
	return nil, ctx.Err()
}

// grantLocked begins turns while there are waiters and fewer calls than the limit.
func (t *turns) grantLocked() {
	limit := t.fixed
	if limit == 0 {
		limit = t.pace.calls()
	}
	for len(t.waiting) > 0 && t.busy < limit {
		w := t.waiting[0]
		t.waiting = slices.Delete(t.waiting, 0, 1)
		t.busy++
		w.turn = &turn{of: t, began: time.Now(), nth: t.busy}
		w.turn.slow = time.AfterFunc(t.pace.slowAfter(), func() { t.expire(w.turn) })
		close(w.granted)
	}
}

// expire ends the turn of a slow call.
func (t *turns) expire(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(one)
}

func (t *turns) endLocked(one *turn) {
	if one.ended {
		return
	}
	one.ended = true
	one.slow.Stop()
	t.busy--
	t.grantLocked()
}

// end is called after the call, which took until now. Failed calls and slow ones do not change the
// pace: their duration is not that of the work.
func (one *turn) end(err error) {
	t := one.of
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && !one.ended {
		t.pace = t.pace.after(time.Since(one.began), max(one.nth, t.busy))
	}
	t.endLocked(one)
}

// errNotMade ends a turn without a call.
var errNotMade = errors.New("call not made")

// starts are the turns of the calls that start pods. Each kind has its own, so that a call that
// hangs delays no other kind: containers restart while no sandbox can be created, and pods in the
// host network, which may be those that provide the network, do not wait for others.
type starts struct{ sandbox, hostSandbox, create, start turns }

// newStarts returns turns with the given limit; see CallConfig.Starts.
func newStarts(fixed int) *starts {
	return &starts{turns{fixed: fixed}, turns{fixed: fixed}, turns{fixed: fixed}, turns{fixed: fixed}}
}

// awaitTurn waits for a turn, and traces the wait and the following step.
func (s *podSync) awaitTurn(ctx context.Context, t *turns, step, target string) (*turn, error) {
	s.trace.begin("AwaitTurn", target)
	one, err := t.take(ctx)
	s.trace.begin(step, target)
	return one, err
}
