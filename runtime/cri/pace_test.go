package cri

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestThePaceFollowsTheLatency(t *testing.T) {
	const ms = time.Millisecond
	doubling := pace{limit: 8, base: 100 * ms}
	steady := pace{limit: 8, base: 100 * ms, steady: true}
	for name, tc := range map[string]struct {
		before  pace
		latency time.Duration
		n       int
		want    pace
	}{
		"the first call":                      {pace{}, 100 * ms, 1, pace{limit: 2, base: 100 * ms}},
		"as fast as one alone":                {doubling, 100 * ms, 8, pace{limit: 9, base: 100 * ms}},
		"within the tolerance":                {doubling, 200 * ms, 8, pace{limit: 9, base: 100 * ms}},
		"few calls, so the limit is no cause": {doubling, 100 * ms, 7, doubling},
		"two of eight wait":                   {doubling, 260 * ms, 8, doubling},
		"six of eight wait":                   {doubling, 800 * ms, 8, pace{limit: 7.5, base: 100 * ms, steady: true}},
		"it grows slowly once it is steady":   {steady, 100 * ms, 8, pace{limit: 8.125, base: 100 * ms, steady: true}},
		"faster than the base":                {steady, 50 * ms, 3, pace{limit: 8, base: 50 * ms, steady: true}},
		"one alone is slower":                 {steady, 180 * ms, 1, pace{limit: 8, base: 110 * ms, steady: true}},
		"never below the minimum":             {pace{limit: 2, base: ms, steady: true}, time.Minute, 30, pace{limit: 2, base: ms, steady: true}},
		"never above the maximum":             {pace{limit: 64, base: 100 * ms}, 100 * ms, 64, pace{limit: 64, base: 100 * ms}},
		"a clock that does not advance":       {pace{}, 0, 1, pace{limit: 2, base: time.Microsecond}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.before.after(tc.latency, tc.n))
		})
	}
	assert.Equal(t, 2, pace{}.calls())
	assert.Equal(t, 3*time.Second, pace{}.slowAfter())
	assert.Equal(t, 8*time.Second, pace{base: time.Second}.slowAfter())
}

// A modelRuntime is a machine on which calls compete: each call needs CPU time and a fixed time that
// others do not affect, and every call beyond the CPUs slows down all of them.
type modelRuntime struct {
	cpus       float64
	contention float64         // slowdown by each call beyond the CPUs
	cpu, wait  []time.Duration // of a call, by kind
}

// A modelCall is a call in progress.
type modelCall struct {
	kind      int
	cpu, wait float64 // milliseconds that remain
	began     float64
	nth       int
}

// start returns how long it takes to start n pods, whose calls of all kinds follow each other, and
// the limits in the end. limit is that of calls of each kind; zero means a pace.
func (m modelRuntime) start(n, limit int, seed uint64) (took time.Duration, limits []int) {
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := len(m.cpu)
	paces, busy, queued := make([]pace, kinds), make([]int, kinds), make([]int, kinds)
	queued[0] = n
	var calls []*modelCall
	now, done := 0.0, 0
	for ; done < n; now++ {
		for k := range kinds {
			allowed := limit
			if limit == 0 {
				allowed = paces[k].calls()
			}
			for ; queued[k] > 0 && busy[k] < allowed; queued[k]-- {
				busy[k]++
				noise := 0.6 + 0.8*random.Float64()
				calls = append(calls, &modelCall{
					kind: k, began: now, nth: busy[k],
					cpu: noise * float64(m.cpu[k].Milliseconds()), wait: noise * float64(m.wait[k].Milliseconds()),
				})
			}
		}
		running := 0.0
		for _, c := range calls {
			if c.cpu > 0 {
				running++
			}
		}
		speed := min(1, m.cpus/running) / (1 + m.contention*max(0, running-m.cpus))
		for _, c := range calls {
			if c.cpu > 0 {
				c.cpu -= speed
			} else {
				c.wait--
			}
		}
		calls = slices.DeleteFunc(calls, func(c *modelCall) bool {
			if c.cpu > 0 || c.wait > 0 {
				return false
			}
			paces[c.kind] = paces[c.kind].after(time.Duration((now+1-c.began)*float64(time.Millisecond)), max(c.nth, busy[c.kind]))
			busy[c.kind]--
			if c.kind+1 < kinds {
				queued[c.kind+1]++
			} else {
				done++
			}
			return true
		})
	}
	for _, p := range paces {
		limits = append(limits, p.calls())
	}
	return time.Duration(now * float64(time.Millisecond)), limits
}

// The pace is compared with every fixed limit, of which the best one differs from machine to
// machine, and with no limit.
func TestThePaceIsNearlyAsGoodAsTheBestFixedLimit(t *testing.T) {
	const ms = time.Millisecond
	list := func(times ...time.Duration) []time.Duration { return times }
	for name, m := range map[string]modelRuntime{
		"two CPUs":                      {2, 0.01, list(120*ms, 40*ms, 60*ms), list(10*ms, 5*ms, 5*ms)},
		"two CPUs, much contention":     {2, 0.1, list(120*ms, 40*ms, 60*ms), list(10*ms, 5*ms, 5*ms)},
		"one CPU":                       {1, 0.05, list(120*ms, 40*ms, 60*ms), list(10*ms, 5*ms, 5*ms)},
		"two CPUs, a slow network":      {2, 0.02, list(60*ms, 40*ms, 60*ms), list(500*ms, 5*ms, 5*ms)},
		"eight CPUs":                    {8, 0.02, list(120*ms, 40*ms, 60*ms), list(10*ms, 5*ms, 5*ms)},
		"32 CPUs":                       {32, 0.01, list(120*ms, 40*ms, 60*ms), list(10*ms, 5*ms, 5*ms)},
		"two CPUs, everything is slow":  {2, 0.02, list(1200*ms, 400*ms, 600*ms), list(100*ms, 50*ms, 50*ms)},
		"two CPUs, only sandboxes cost": {2, 0.02, list(200*ms, 2*ms, 2*ms), list(1*ms, 1*ms, 1*ms)},
	} {
		t.Run(name, func(t *testing.T) {
			const pods = 110
			best, at := time.Duration(math.MaxInt64), 0
			for _, limit := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64} {
				if took, _ := m.start(pods, limit, 1); took < best {
					best, at = took, limit
				}
			}
			unlimited, _ := m.start(pods, pods, 1)
			took, limits := m.start(pods, 0, 1)
			t.Logf("%v with limits of %v in the end; %v with the best fixed one, %d of each kind; %v without", took, limits, best, at, unlimited)
			assert.LessOrEqual(t, took.Seconds(), 1.3*best.Seconds(), "on 32 CPUs, a fifth of the time is that until the limit has grown")
		})
	}
}
