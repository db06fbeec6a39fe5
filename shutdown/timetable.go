package shutdown

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A timetable has the limits of the remaining shutdown. It is immutable.
type timetable struct {
	policy Policy    // of the groups that have not started; its groups are sorted
	next   int       // index of the next group
	upTo   time.Time // when the groups so far would have ended if they used all of their time
	ready  time.Time // end of the current group's propagation
	until  time.Time // end of the current group
	last   time.Time // end of the shutdown
}

func newTimetable(p Policy, now, deadline time.Time) timetable {
	p.Groups = p.sorted()
	t := timetable{policy: p, upTo: now, ready: now, until: now, last: now.Add(p.Total())}
	return t.withDeadline(now, deadline)
}

// begin returns the timetable at the start of the next group. An empty group takes no time.
func (t timetable) begin(now time.Time, empty bool) timetable {
	period := t.policy.Groups[t.next].Period
	t.next++
	t.upTo = t.upTo.Add(period)
	if empty {
		return t
	}
	t.upTo = t.upTo.Add(t.policy.Propagation)
	t.until = now.Add(period + t.policy.Propagation)
	if t.policy.CarryOver {
		t.until = t.upTo
	}
	return t
}

// drained returns the timetable after the pods of the group were published as not ready.
func (t timetable) drained(now time.Time) timetable {
	t.ready = earlier(now.Add(t.policy.Propagation), t.until)
	return t
}

// withDeadline returns the timetable for a machine that stops at the deadline: the remaining
// periods are shortened in proportion, unless they end before it. A later deadline, or zero, has
// no effect.
func (t timetable) withDeadline(now, deadline time.Time) timetable {
	if deadline.IsZero() || !deadline.Before(t.last) {
		return t
	}
	t.last = deadline
	current := t.until
	if t.policy.CarryOver {
		current = t.upTo
	}
	left := max(current.Sub(now), 0) + t.policy.Flush
	for _, g := range t.policy.Groups[t.next:] {
		left += g.Period + t.policy.Propagation
	}
	if wait := max(deadline.Sub(now), 0); wait < left {
		factor := float64(wait) / float64(left)
		t.policy = t.policy.scaled(factor)
		for _, at := range []*time.Time{&t.upTo, &t.ready, &t.until} {
			if at.After(now) {
				*at = now.Add(time.Duration(factor * float64(at.Sub(now))))
			}
		}
	}
	return t
}

// scaled returns the policy with all periods multiplied by factor.
func (p Policy) scaled(factor float64) Policy {
	p.Propagation = time.Duration(factor * float64(p.Propagation))
	p.Flush = time.Duration(factor * float64(p.Flush))
	p.Groups = slices.Clone(p.Groups)
	for i := range p.Groups {
		p.Groups[i].Period = time.Duration(factor * float64(p.Groups[i].Period))
	}
	return p
}

// A schedule has the timetable of the current shutdown.
type schedule struct {
	mu      sync.Mutex // guards the fields below
	table   timetable
	changed chan struct{} // closed when the timetable is shortened
}

func newSchedule(p Policy, deadline time.Time) *schedule {
	return &schedule{table: newTimetable(p, time.Now(), deadline), changed: make(chan struct{})}
}

// current returns the timetable, and a channel that is closed when it is shortened.
func (s *schedule) current() (timetable, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table, s.changed
}

// begin starts the next group.
func (s *schedule) begin(empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = s.table.begin(time.Now(), empty)
}

// drained starts the propagation of the current group.
func (s *schedule) drained() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = s.table.drained(time.Now())
}

// shorten applies a deadline and reports whether it shortens the shutdown.
func (s *schedule) shorten(deadline time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.withDeadline(time.Now(), deadline)
	if !t.last.Before(s.table.last) {
		return false
	}
	s.table = t
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// try calls do, with the limit that by selects from the timetable. If the timetable is shortened
// in between, do is called again with the new limit.
func (s *schedule) try(ctx context.Context, by func(timetable) time.Time, do func(ctx context.Context, until time.Time) error) error {
	for {
		table, changed := s.current()
		until := by(table)
		again, err := s.once(ctx, until, changed, do)
		if !again {
			return err
		}
	}
}

// once calls do once; its context is canceled when the timetable changes.
func (s *schedule) once(ctx context.Context, until time.Time, changed <-chan struct{}, do func(context.Context, time.Time) error) (again bool, err error) {
	attempt, cancel := context.WithDeadline(ctx, until)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-changed:
			cancel()
		case <-attempt.Done():
		}
	})
	err = do(attempt, until)
	cancel()
	wg.Wait()
	if err == nil || ctx.Err() != nil || !time.Now().Before(until) {
		return false, err
	}
	select {
	case <-changed:
		return true, err
	default:
		return false, err
	}
}

func byUntil(t timetable) time.Time { return t.until }
func byReady(t timetable) time.Time { return t.ready }
func byLast(t timetable) time.Time  { return t.last }
