package podworker

import "time"

// garbageRetry is the delay after the first failed collection. It doubles up to the period,
// so that a short outage of the runtime delays the removal of containers only briefly.
const garbageRetry = 5 * time.Second

// quietPeriods is the number of periods after which garbage is collected although there seems to be
// none. What other programs leave behind is found then.
const quietPeriods = 5

// A garbageState is what the runtime contains as last listed.
type garbageState int

const (
	noGarbage   garbageState = iota // all containers run, and no pod was removed
	someGarbage                     // there is something to remove
	noPods                          // the list is empty, or there was none
)

// A garbageSchedule decides when garbage is collected. It has no clock and no timer.
type garbageSchedule struct {
	period time.Duration
	tick   time.Time     // when the period ends
	retry  time.Time     // when a failed collection is retried; zero: not before tick
	delay  time.Duration // of the next retry
	quiet  int           // periods since the last collection
	failed bool          // the last collection failed
}

func newGarbageSchedule(period time.Duration, now time.Time) garbageSchedule {
	return garbageSchedule{period: period, tick: now.Add(period), delay: garbageRetry, quiet: quietPeriods}
}

// next returns when wake is to be called, if it is not signaled before.
func (s *garbageSchedule) next() time.Time {
	if !s.retry.IsZero() && s.retry.Before(s.tick) {
		return s.retry
	}
	return s.tick
}

// wake reports whether garbage is to be collected now, and whether only a retry is due. One collection
// serves everything that is due.
func (s *garbageSchedule) wake(now time.Time, signaled bool, state garbageState) (due, retry bool) {
	ticked, retry := !now.Before(s.tick), !s.retry.IsZero() && !now.Before(s.retry)
	if ticked {
		s.tick = s.tick.Add(s.period * (1 + now.Sub(s.tick)/s.period))
		s.quiet++
	}
	if retry {
		s.retry, s.delay = time.Time{}, 2*s.delay
	}
	due = signaled || retry || ticked && (state != noGarbage || s.failed || s.quiet >= quietPeriods)
	if due {
		s.quiet = 0
		if state == someGarbage {
			s.quiet = quietPeriods - 1 // the next collection removes what this one makes removable
		}
	}
	return due, retry && !ticked && !signaled
}

// collected applies the result of a collection.
func (s *garbageSchedule) collected(now time.Time, err error) {
	s.failed = err != nil
	switch {
	case err == nil:
		s.retry, s.delay = time.Time{}, garbageRetry
	case s.retry.IsZero() && s.delay < s.period:
		s.retry = now.Add(s.delay)
	}
}
