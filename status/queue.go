package status

import (
	"container/heap"
	"time"
)

// A spot is where an entry stands. An entry is in one place at a time, which
// is what keeps the calls for one pod from overlapping.
type spot int

const (
	idle    spot = iota // nothing to do
	ready               // waits for its turn
	delayed             // waits for its retryAt
	busy                // a call of the sink is under way
)

// A queue holds the entries with something to deliver: the ready ones in the
// order they came, the delayed ones by time. The manager's mu guards it.
type queue struct {
	ready   []*entry
	delayed byRetry
}

// add puts an idle entry at the end of the ready ones.
func (q *queue) add(e *entry) {
	e.spot = ready
	q.ready = append(q.ready, e)
}

// delay puts an entry aside until then.
func (q *queue) delay(e *entry, until time.Time) {
	e.spot, e.retryAt = delayed, until
	heap.Push(&q.delayed, e)
}

// next takes the first entry whose turn it is, or returns nil.
func (q *queue) next(now time.Time) *entry {
	for len(q.delayed) > 0 && !q.delayed[0].retryAt.After(now) {
		q.add(heap.Pop(&q.delayed).(*entry))
	}
	if len(q.ready) == 0 {
		return nil
	}
	e := q.ready[0]
	q.ready[0] = nil // let go of it
	q.ready = q.ready[1:]
	if len(q.ready) == 0 {
		q.ready = nil // a burst does not hold its memory
	}
	e.spot = busy
	return e
}

// retryAt returns when the first delayed entry is due; zero if there is none.
func (q *queue) retryAt() time.Time {
	if len(q.delayed) == 0 {
		return time.Time{}
	}
	return q.delayed[0].retryAt
}

// hurry makes the delayed entries ready.
func (q *queue) hurry() {
	for len(q.delayed) > 0 {
		q.add(heap.Pop(&q.delayed).(*entry))
	}
}

func (q *queue) len() int { return len(q.ready) + len(q.delayed) }

// byRetry is a heap of entries, soonest first.
type byRetry []*entry

func (h byRetry) Len() int           { return len(h) }
func (h byRetry) Less(i, j int) bool { return h[i].retryAt.Before(h[j].retryAt) }
func (h byRetry) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byRetry) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *byRetry) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
