package status

import (
	"container/heap"
	"slices"
	"time"
)

// A queueState is the state of an entry in the queue. An entry has one state at a time, so that the calls
// for one pod do not overlap.
type queueState int

const (
	idle    queueState = iota // no call is due
	ready                     // in a lane
	delayed                   // in queue.delayed until its retryAt
	busy                      // a call of the sink is in flight
)

// maxUrgentRun is the number of urgent entries that are taken before a routine one, so that routine
// entries are not starved.
const maxUrgentRun = 4

// A queue contains the entries with due calls: the ready ones in two lanes, each in order of arrival, and
// the delayed ones by time. The Manager's mu guards it.
type queue struct {
	urgent, routine lane
	urgentRun       int // urgent entries taken since the last routine one
	delayed         byRetry
}

// add puts an entry at the end of its lane.
func (q *queue) add(e *entry) {
	e.state = ready
	if e.urgent() {
		q.urgent = append(q.urgent, e)
	} else {
		q.routine = append(q.routine, e)
	}
}

// delay makes an entry ready at that time.
func (q *queue) delay(e *entry, until time.Time) {
	e.state, e.retryAt = delayed, until
	heap.Push(&q.delayed, e)
}

// undelay removes an entry from the delayed ones.
func (q *queue) undelay(e *entry) {
	heap.Remove(&q.delayed, e.index)
	e.state = idle
}

// next removes the next ready entry and marks it as busy; nil if there is none.
func (q *queue) next(now time.Time) *entry {
	for len(q.delayed) > 0 && !q.delayed[0].retryAt.After(now) {
		q.add(heap.Pop(&q.delayed).(*entry))
	}
	from := &q.urgent
	switch {
	case len(q.urgent)+len(q.routine) == 0:
		return nil
	case len(q.urgent) == 0, len(q.routine) > 0 && q.urgentRun >= maxUrgentRun:
		from, q.urgentRun = &q.routine, 0
	default:
		q.urgentRun++
	}
	e := from.take()
	e.state = busy
	return e
}

// retryAt returns when the first delayed entry is due; zero if there is none.
func (q *queue) retryAt() time.Time {
	if len(q.delayed) == 0 {
		return time.Time{}
	}
	return q.delayed[0].retryAt
}

// retry makes the entries ready that are delayed after a failed call.
func (q *queue) retry() {
	for _, e := range slices.Clone(q.delayed) {
		if e.failures > 0 {
			q.undelay(e)
			q.add(e)
		}
	}
}

// expedite makes all delayed entries ready.
func (q *queue) expedite() {
	for len(q.delayed) > 0 {
		q.add(heap.Pop(&q.delayed).(*entry))
	}
}

func (q *queue) len() int { return len(q.urgent) + len(q.routine) + len(q.delayed) }

// A lane is a queue of ready entries. An entry that becomes urgent stays in its lane.
type lane []*entry

func (l *lane) take() *entry {
	e := (*l)[0]
	(*l)[0] = nil // for the garbage collector
	*l = (*l)[1:]
	if len(*l) == 0 {
		*l = nil // releases the memory of a burst
	}
	return e
}

// urgent reports whether other components act on the due call: readiness changes, the pod becomes
// terminal, or it may be deleted.
func (e *entry) urgent() bool {
	return e.version == e.sent || IsReady(&e.status) != e.ready || !e.withheld && Terminal(e.status.Phase) && !Terminal(e.published.Phase)
}

// byRetry is a heap of entries, soonest first.
type byRetry []*entry

func (h byRetry) Len() int           { return len(h) }
func (h byRetry) Less(i, j int) bool { return h[i].retryAt.Before(h[j].retryAt) }
func (h byRetry) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byRetry) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *byRetry) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
