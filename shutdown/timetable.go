package shutdown

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A timetable says when what is left of a shutdown is to be over. What changes it
// returns another.
type timetable struct {
	policy Policy    // of what has not begun; its groups are sorted
	next   int       // the first of the groups that has not begun
	upTo   time.Time // when the groups so far would have ended with all of their time
	ready  time.Time // when the propagation of the group that is under way is over
	until  time.Time // when that group is
	last   time.Time // when all is
}

func newTimetable(p Policy, now, deadline time.Time) timetable {
	p.Groups = p.sorted()
	t := timetable{policy: p, upTo: now, ready: now, until: now, last: now.Add(p.Total())}
	return t.nearer(now, deadline)
}

// begin returns the timetable when the next group begins; of one that is empty,
// nothing is under way (sh-7).
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
		t.until = t.upTo // F-65
	}
	return t
}

// told returns the timetable when it has been said that the pods of the group are not
// ready.
func (t timetable) told(now time.Time) timetable {
	t.ready = earlier(now.Add(t.policy.Propagation), t.until)
	return t
}

// nearer returns the timetable of a machine that turns out to stop at the deadline: all
// that is left is shortened alike (F-62). What would be over by then stays as it is, and
// a deadline that is later, or none (zero), changes nothing.
func (t timetable) nearer(now, deadline time.Time) timetable {
	if deadline.IsZero() || !deadline.Before(t.last) {
		return t
	}
	t.last = deadline
	under := t.until
	if t.policy.CarryOver {
		under = t.upTo
	}
	left := max(under.Sub(now), 0) + t.policy.Flush
	for _, g := range t.policy.Groups[t.next:] {
		left += g.Period + t.policy.Propagation
	}
	if wait := max(deadline.Sub(now), 0); wait < left {
		share := float64(wait) / float64(left)
		t.policy = t.policy.scaled(share)
		for _, at := range []*time.Time{&t.upTo, &t.ready, &t.until} {
			if at.After(now) {
				*at = now.Add(time.Duration(share * float64(at.Sub(now))))
			}
		}
	}
	return t
}

// scaled returns the policy with that share of each of its times.
func (p Policy) scaled(share float64) Policy {
	p.Propagation = time.Duration(share * float64(p.Propagation))
	p.Flush = time.Duration(share * float64(p.Flush))
	p.Groups = slices.Clone(p.Groups)
	for i := range p.Groups {
		p.Groups[i].Period = time.Duration(share * float64(p.Groups[i].Period))
	}
	return p
}

// A schedule is the timetable of the shutdown that is under way.
type schedule struct {
	mu      sync.Mutex // guards the fields below
	table   timetable
	changed chan struct{} // closed when all is to be over sooner
}

func newSchedule(p Policy, deadline time.Time) *schedule {
	return &schedule{table: newTimetable(p, time.Now(), deadline), changed: make(chan struct{})}
}

// look returns the timetable, and what is closed when it is shortened.
func (s *schedule) look() (timetable, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table, s.changed
}

// begin is about the next group, and returns how long it has.
func (s *schedule) begin(empty bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	period := s.table.policy.Groups[s.table.next].Period
	s.table = s.table.begin(time.Now(), empty)
	return period
}

// told is when the traffic begins to go elsewhere.
func (s *schedule) told() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = s.table.told(time.Now())
}

// shorten is told when the machine stops. It says whether that is news.
func (s *schedule) shorten(deadline time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.nearer(time.Now(), deadline)
	if !t.last.Before(s.table.last) {
		return false
	}
	s.table = t
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// try does something that may take until the time that by picks of the timetable. If
// that is shortened meanwhile, it is done again with what is left.
func (s *schedule) try(ctx context.Context, by func(timetable) time.Time, do func(ctx context.Context, until time.Time) error) error {
	for {
		table, changed := s.look()
		until := by(table)
		again, err := s.once(ctx, until, changed, do)
		if !again {
			return err
		}
	}
}

// once is an attempt, which ends when the timetable changes.
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
