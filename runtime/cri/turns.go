package cri

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// turns limits the calls that start pods. Of one kind, callers take turns in the order in which they
// came. A call that hangs delays others little: a slow call no longer counts, and one call of each
// kind may always be made, so that containers restart while no sandbox can be created, and pods in
// the host network, which may be those that provide the network, do not wait for others. The zero
// value has the limit of its pace. Safe for concurrent use.
type turns struct {
	fixed int // the limit; zero: that of the pace; negative: none

	// mu guards the fields below.
	mu      sync.Mutex
	pace    pace
	total   int             // calls that count
	busy    [startKinds]int // of each kind
	waiting [startKinds][]*waiter
}

// A waiter waits for its turn.
type waiter struct {
	granted chan struct{} // closed when turn is set
	turn    *turn
}

// A turn is one call in progress.
type turn struct {
	of    *turns // nil: there is no limit
	kind  startKind
	began time.Time
	nth   int         // of the calls in progress when it began
	slow  *time.Timer // ends the turn
	ended bool        // guarded by turns.mu
}

// take blocks until the caller may make a call. It must call end after that. It returns the error
// of ctx if that is done before.
func (t *turns) take(ctx context.Context, kind startKind) (*turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.fixed < 0 {
		return new(turn), nil
	}
	w := &waiter{granted: make(chan struct{})}
	t.mu.Lock()
	t.waiting[kind] = append(t.waiting[kind], w)
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
	t.waiting[kind] = slices.DeleteFunc(t.waiting[kind], func(o *waiter) bool { return o == w })
	return nil, ctx.Err()
}

// grantLocked begins turns while there are waiters and fewer calls than the limit.
func (t *turns) grantLocked() {
	limit := t.fixed
	if limit == 0 {
		limit = t.pace.calls()
	}
	for kind := range startKinds {
		for len(t.waiting[kind]) > 0 && (t.total < limit || t.busy[kind] == 0) {
			w := t.waiting[kind][0]
			t.waiting[kind] = slices.Delete(t.waiting[kind], 0, 1)
			t.total++
			t.busy[kind]++
			w.turn = &turn{of: t, kind: kind, began: time.Now(), nth: t.total}
			w.turn.slow = time.AfterFunc(t.pace.slowAfter(kind), func() { t.expire(w.turn) })
			close(w.granted)
		}
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
	t.total--
	t.busy[one.kind]--
	t.grantLocked()
}

// end is called after the call, which took until now. Failed calls and slow ones do not change the
// pace: their duration is not that of the work. Further calls of end have no effect.
func (one *turn) end(err error) {
	t := one.of
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && !one.ended {
		t.pace = t.pace.after(one.kind, time.Since(one.began), max(one.nth, t.total))
	}
	t.endLocked(one)
}

// errNotMade ends a turn without a call.
var errNotMade = errors.New("call not made")

// awaitTurn waits for a turn, and traces the wait and the following step.
func (s *podSync) awaitTurn(ctx context.Context, kind startKind, step, target string) (*turn, error) {
	s.trace.begin("AwaitTurn", target)
	one, err := s.r.turns.take(ctx, kind)
	s.trace.begin(step, target)
	return one, err
}
