package client

import "sync"

// An eventQueue has the events that are not written yet, oldest first. Memory is used by events
// only: a process with hundreds of nodes has as many queues, most of which are empty.
type eventQueue struct {
	limit int           // maximum number of events
	ready chan struct{} // capacity 1; an event was added

	mu     sync.Mutex // guards the field below
	events []queued
}

func newEventQueue(limit int) *eventQueue {
	return &eventQueue{limit: limit, ready: make(chan struct{}, 1)}
}

// push adds an event. It reports false if the queue is full.
func (q *eventQueue) push(e queued) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) >= q.limit {
		return false
	}
	q.events = append(q.events, e)
	select {
	case q.ready <- struct{}{}:
	default:
	}
	return true
}

// pop removes the oldest event. It reports false if there is none.
func (q *eventQueue) pop() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return queued{}, false
	}
	e := q.events[0]
	q.events[0] = queued{} // for the garbage collector
	if q.events = q.events[1:]; len(q.events) == 0 {
		q.events = nil
	}
	return e, true
}

func (q *eventQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}
