package cri

import (
	"sync"
	"time"
)

// After maxAttempts failures, a sandbox is not removed again before minDelay, which
// doubles up to maxDelay.
const (
	maxAttempts = 3
	minDelay    = time.Minute
	maxDelay    = 15 * time.Minute
)

// stuckSandboxes delays attempts to remove sandboxes that could not be removed. The
// zero value is empty.
type stuckSandboxes struct {
	mu  sync.Mutex // guards the field below
	all map[string]stuckSandbox
}

type stuckSandbox struct {
	until time.Time
	tries int
}

func (s *stuckSandboxes) due(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.all[id].until)
}

func (s *stuckSandboxes) tried(id string, failed bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !failed {
		delete(s.all, id)
		return
	}
	if s.all == nil {
		s.all = map[string]stuckSandbox{}
	}
	n := s.all[id].tries + 1
	delay := time.Duration(0)
	if n >= maxAttempts {
		delay = min(minDelay<<min(n-maxAttempts, 10), maxDelay)
	}
	s.all[id] = stuckSandbox{now.Add(delay), n}
}

// retain drops all sandboxes that are not in ids.
func (s *stuckSandboxes) retain(ids []string) {
	keep := map[string]bool{}
	for _, id := range ids {
		keep[id] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.all {
		if !keep[id] {
			delete(s.all, id)
		}
	}
}
