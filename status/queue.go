package status

import (
	"container/heap"
	"slices"
	"time"
)

// A spot is where an entry stands. An entry is in one place at a time, which
// is what keeps the calls for one pod from overlapping.
type queueState int

const (
	idle    queueState = iota // nothing to do
	ready                     // waits for its turn
	delayed                   // waits for its retryAt
	busy                      // a call of the sink is under way
)

// inARow is how many urgent entries go before one that is not, while there are
// both: what is urgent is soon said, and nothing waits for ever.
const maxUrgentRun = 4

// A queue holds the entries with something to deliver: the ready ones in two
// lanes, each in the order they came, the delayed ones by time. The manager's mu
// guards it.
type queue struct {
	urgent, routine lane
	urgentRun       int // urgent ones taken since the last routine one
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

// delay puts an entry aside until then.
func (q *queue) delay(e *entry, until time.Time) {
	e.state, e.retryAt = delayed, until
	heap.Push(&q.delayed, e)
}

// undelay takes an entry from those put aside.
func (q *queue) undelay(e *entry) {
	heap.Remove(&q.delayed, e.index)
	e.state = idle
}

// next takes the first entry whose turn it is, or returns nil.
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

// retry makes those ready that are delayed because a call failed.
func (q *queue) retry() {
	for _, e := range slices.Clone(q.delayed) {
		if e.failures > 0 {
			q.undelay(e)
			q.add(e)
		}
	}
}

// hurry makes the delayed entries ready.
func (q *queue) expedite() {
	for len(q.delayed) > 0 {
		q.add(heap.Pop(&q.delayed).(*entry))
	}
}

func (q *queue) len() int { return len(q.urgent) + len(q.routine) + len(q.delayed) }

// A lane is entries that wait for their turn. One that has become urgent while
// it waits stays where it is: it is soon done in any case.
type lane []*entry

func (l *lane) take() *entry {
	e := (*l)[0]
	(*l)[0] = nil // let go of it
	*l = (*l)[1:]
	if len(*l) == 0 {
		*l = nil // a burst does not hold its memory
	}
	return e
}

// matters reports whether others act on what is to be said of the entry: whether
// the pod serves, that it has ended, that it may be deleted.
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
