package broadcast

import "sync"

// A Sender sends events to its readers. The zero value has none. It is safe for concurrent use.
type Sender[E any] struct {
	mu      sync.Mutex
	readers map[*Reader[E]]struct{}
}

// HasReaders reports whether there is a reader that is not late.
func (s *Sender[E]) HasReaders() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.readers) > 0
}

// Open returns a reader of the events from now on, with a queue of limit events. It must be closed.
func (s *Sender[E]) Open(limit int) *Reader[E] {
	r := &Reader[E]{of: s, limit: limit, more: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers == nil {
		s.readers = map[*Reader[E]]struct{}{}
	}
	s.readers[r] = struct{}{}
	return r
}

// Send queues an event for all readers. It does not block.
func (s *Sender[E]) Send(e E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers {
		if len(r.queue) >= r.limit {
			r.queue, r.late = nil, true
			delete(s.readers, r)
		} else {
			r.queue = append(r.queue, e)
		}
		select {
		case r.more <- struct{}{}:
		default:
		}
	}
}

// A Reader has the events that were sent since it was opened. It is for one goroutine.
type Reader[E any] struct {
	of    *Sender[E]
	limit int
	more  chan struct{}

	// Guarded by of.mu.
	queue []E
	late  bool
}

// More returns a channel that receives a value when Take has something to return.
func (r *Reader[E]) More() <-chan struct{} { return r.more }

// Take returns the queued events in their order, and removes them. late reports that the queue was full:
// its events and all later ones are lost.
func (r *Reader[E]) Take() (events []E, late bool) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	events, r.queue = r.queue, nil
	return events, r.late
}

// Close ends the reader.
func (r *Reader[E]) Close() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	delete(r.of.readers, r)
}
