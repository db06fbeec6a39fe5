package shutdown

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Tests of the pure part alone: whatever notice arrives and when, nothing terminates
// later than it would have, all terminate by the deadline, and the remaining times
// keep their proportions.
func TestTheRestOfAShutdownIsShortenedProportionally(t *testing.T) {
	const s = time.Second
	at := time.Unix(1_000_000, 0)
	policy := Policy{Groups: []Group{{10, 30 * s}, {0, 20 * s}}, Propagation: 5 * s, Flush: 10 * s}
	first := newTimetable(policy, at, time.Time{}).begin(at, false).drained(at)
	assert.Equal(t, 70*s, first.last.Sub(at))
	now := at.Add(5 * s) // 65 s are left

	t.Run("by half", func(t *testing.T) {
		half := first.withDeadline(now, now.Add(32500*time.Millisecond))
		assert.Equal(t, 10*s, half.until.Sub(now), "20 s were left of the group")
		assert.Equal(t, at.Add(5*s), half.ready, "already elapsed")
		assert.Equal(t, Policy{Groups: []Group{{0, 10 * s}, {10, 15 * s}}, Propagation: 2500 * time.Millisecond, Flush: 5 * s}, half.policy)
		next := half.begin(half.until, false)
		assert.Equal(t, 27500*time.Millisecond, next.until.Sub(now), "and 5 s are left for the last statuses")
	})
	t.Run("not when it is early enough", func(t *testing.T) {
		for _, d := range []time.Time{{}, first.last, first.last.Add(s)} {
			assert.Equal(t, first, first.withDeadline(now, d))
		}
		early := first.begin(now, false).withDeadline(now, now.Add(45*s)) // the first group was quick: 35 s and 10 s
		assert.Equal(t, 35*s, early.until.Sub(now))
		assert.Equal(t, now.Add(45*s), early.last)
	})
	t.Run("the propagation ends with its group", func(t *testing.T) {
		group := newTimetable(policy, at, time.Time{}).begin(at, false)
		assert.Equal(t, at.Add(8*s), group.drained(at.Add(3*s)).ready)
		assert.Equal(t, group.until, group.drained(group.until.Add(-2*s)).ready, "the status was published late")
	})
	t.Run("to nothing", func(t *testing.T) {
		for _, d := range []time.Time{now, at} {
			none := first.withDeadline(now, d)
			assert.Equal(t, now, none.until)
			assert.Zero(t, none.policy.Total())
		}
	})
	t.Run("never to more", func(t *testing.T) {
		nearer := first.withDeadline(now, now.Add(20*s))
		assert.Equal(t, nearer, nearer.withDeadline(now.Add(s), now.Add(40*s)))
		nearest := nearer.withDeadline(now.Add(s), now.Add(10*s))
		assert.True(t, nearest.until.Before(nearer.until))
		assert.Equal(t, now.Add(10*s), nearest.last)
	})
}
