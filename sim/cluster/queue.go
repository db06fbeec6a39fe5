package cluster

import "time"

// A queue has the future events of a simulation. Events of one instant take place in the
// order in which they were added.
type queue struct {
	heap  []queued
	added uint64
}

type queued struct {
	at    time.Duration
	order uint64
	do    func()
}

func (q *queue) before(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (q *queue) add(at time.Duration, do func()) {
	q.added++
	q.heap = append(q.heap, queued{at, q.added, do})
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

// next removes the first event that is not after end.
func (q *queue) next(end time.Duration) (e queued, ok bool) {
	if len(q.heap) == 0 || q.heap[0].at > end {
		return e, false
	}
	e = q.heap[0]
	last := len(q.heap) - 1
	q.heap[0], q.heap[last] = q.heap[last], queued{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.before(child, least) {
				least = child
			}
		}
		if least == i {
			return e, true
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
