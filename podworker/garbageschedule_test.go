package podworker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestGarbageSchedule(t *testing.T) { // cg-9
	const s, m = time.Second, time.Minute
	failed := assert.AnError
	type wake struct {
		at       time.Duration
		signaled bool
		state    garbageState
		due      bool
		retry    bool // only that
		err      error
		next     time.Duration // after a collection, if it was due, that takes no time
	}
	for name, wakes := range map[string][]wake{
		"the first period, then every fifth without garbage": {
			{at: 1 * m, due: true, next: 2 * m}, {at: 2 * m, next: 3 * m}, {at: 3 * m, next: 4 * m}, {at: 4 * m, next: 5 * m},
			{at: 5 * m, next: 6 * m}, {at: 6 * m, due: true, next: 7 * m}, {at: 7 * m, next: 8 * m},
		},
		"each period with garbage, and once after it": {
			{at: 1 * m, state: someGarbage, due: true, next: 2 * m}, {at: 2 * m, state: someGarbage, due: true, next: 3 * m},
			{at: 3 * m, due: true, next: 4 * m}, {at: 4 * m, next: 5 * m},
		},
		"each period without a pod, but not after that": {
			{at: 1 * m, state: noPods, due: true, next: 2 * m}, {at: 2 * m, state: noPods, due: true, next: 3 * m}, {at: 3 * m, next: 4 * m},
		},
		"a signal, from which five periods count": {
			{at: 1 * m, due: true, next: 2 * m}, {at: 90 * s, signaled: true, due: true, next: 2 * m}, {at: 2 * m, next: 3 * m},
			{at: 3 * m, next: 4 * m}, {at: 4 * m, next: 5 * m}, {at: 5 * m, next: 6 * m}, {at: 6 * m, due: true, next: 7 * m},
		},
		"a wake for nothing": {
			{at: 10 * s, state: someGarbage, next: 1 * m},
		},
		"retries after 5, 10, 20 and 40 s, and at the end of the period": {
			{at: 1 * m, due: true, err: failed, next: 65 * s},
			{at: 65 * s, due: true, retry: true, err: failed, next: 75 * s},
			{at: 75 * s, due: true, retry: true, err: failed, next: 95 * s},
			{at: 95 * s, due: true, retry: true, err: failed, next: 2 * m},
			{at: 2 * m, due: true, err: failed, next: 135 * s},
			{at: 135 * s, due: true, retry: true, err: failed, next: 3 * m},
			{at: 3 * m, due: true, err: failed, next: 4 * m},
		},
		"the delay begins again after a success": {
			{at: 1 * m, due: true, err: failed, next: 65 * s}, {at: 65 * s, due: true, retry: true, err: failed, next: 75 * s},
			{at: 75 * s, due: true, retry: true, next: 2 * m}, {at: 80 * s, signaled: true, due: true, err: failed, next: 85 * s},
		},
		"a signal does not postpone a retry": {
			{at: 1 * m, due: true, err: failed, next: 65 * s}, {at: 62 * s, signaled: true, due: true, err: failed, next: 65 * s},
			{at: 65 * s, due: true, retry: true, next: 2 * m},
		},
		"one collection for a tick, a retry and a signal": {
			{at: 58 * s, signaled: true, due: true, err: failed, next: 1 * m}, {at: 64 * s, signaled: true, due: true, next: 2 * m},
		},
		"a tick with a retry is more than a retry": {
			{at: 58 * s, signaled: true, due: true, err: failed, next: 1 * m}, {at: 63 * s, due: true, err: failed, next: 73 * s},
			{at: 73 * s, due: true, retry: true, next: 2 * m},
		},
		"periods that end during a collection count as one": {
			{at: 1 * m, due: true, next: 2 * m}, {at: 270 * s, state: someGarbage, due: true, next: 5 * m},
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(0, 0)
			schedule := newGarbageSchedule(m, start)
			assert.Equal(t, start.Add(m), schedule.next())
			for _, w := range wakes {
				now := start.Add(w.at)
				due, retry := schedule.wake(now, w.signaled, w.state)
				assert.Equal(t, w.due, due, "due at %v", w.at)
				assert.Equal(t, w.retry, retry, "retry at %v", w.at)
				if due {
					schedule.collected(now, w.err)
				}
				assert.Equal(t, w.next, schedule.next().Sub(start), "next at %v", w.at)
			}
		})
	}
}
