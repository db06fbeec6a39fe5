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
	growing := pace{limit: 8, base: base(100 * ms)}
	steady := pace{limit: 8, base: base(100 * ms), steady: true}
	for name, tc := range map[string]struct {
		before  pace
		latency time.Duration
		n       int
		want    pace
	}{
		"the first call":                      {pace{}, 100 * ms, 1, pace{limit: 2, base: base(100 * ms)}},
		"as fast as one alone":                {growing, 100 * ms, 8, pace{limit: 10, base: base(100 * ms)}},
		"within the tolerance":                {growing, 200 * ms, 8, pace{limit: 10, base: base(100 * ms)}},
		"few calls, so the limit is no cause": {growing, 100 * ms, 7, growing},
		"nearly one of eight waits":           {growing, 220 * ms, 8, growing},
		"six of eight wait":                   {growing, 800 * ms, 8, pace{limit: 7.375, base: base(100 * ms), steady: true}},
		"it grows slowly once it is steady":   {steady, 100 * ms, 8, pace{limit: 8.125, base: base(100 * ms), steady: true}},
		"faster than the base":                {steady, 50 * ms, 3, pace{limit: 8, base: base(50 * ms), steady: true}},
		"one alone is slower":                 {steady, 180 * ms, 1, pace{limit: 8, base: base(110 * ms), steady: true}},
		"never below the minimum":             {pace{limit: 2, base: base(ms), steady: true}, time.Minute, 30, pace{limit: 2, base: base(ms), steady: true}},
		"never above the maximum":             {pace{limit: 256, base: base(100 * ms)}, 100 * ms, 256, pace{limit: 256, base: base(100 * ms)}},
		"a clock that does not advance":       {pace{}, 0, 1, pace{limit: 2, base: base(time.Microsecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.before.after(runSandbox, tc.latency, tc.n))
		})
	}
	assert.Equal(t, 2, pace{}.calls())
	assert.Equal(t, 3*time.Second, pace{}.slowAfter(runSandbox))
	assert.Equal(t, 8*time.Second, pace{base: base(time.Second)}.slowAfter(runSandbox))
}

// base returns the base latency of sandboxes.
func base(d time.Duration) (b [startKinds]time.Duration) {
	b[runSandbox] = d
	return b
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
// the limit in the end. limit applies to all calls; zero means a pace.
func (m modelRuntime) start(n, limit int, seed uint64) (took time.Duration, last int) {
	random := rand.New(rand.NewPCG(seed, 0))
	order := []startKind{runSandbox, createContainer, startContainer}
	var p pace
	queued := make([]int, len(order))
	queued[0] = n
	var calls []*modelCall
	now, done := 0.0, 0
	for ; done < n; now++ {
		allowed := limit
		if limit == 0 {
			allowed = p.calls()
		}
		for k := len(order) - 1; k >= 0; k-- {
			for ; queued[k] > 0 && len(calls) < allowed; queued[k]-- {
				noise := 0.6 + 0.8*random.Float64()
				calls = append(calls, &modelCall{
					kind: k, began: now, nth: len(calls) + 1,
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
		busy := len(calls)
		calls = slices.DeleteFunc(calls, func(c *modelCall) bool {
			if c.cpu > 0 {
				c.cpu -= speed
			} else {
				c.wait--
			}
			if c.cpu > 0 || c.wait > 0 {
				return false
			}
			p = p.after(order[c.kind], time.Duration((now+1-c.began)*float64(time.Millisecond)), max(c.nth, busy))
			busy--
			if c.kind+1 < len(order) {
				queued[c.kind+1]++
			} else {
				done++
			}
			return true
		})
	}
	return time.Duration(now * float64(time.Millisecond)), p.calls()
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
			took, last := m.start(pods, 0, 1)
			t.Logf("%v with a limit of %d in the end; %v with the best fixed one, %d; %v without", took, last, best, at, unlimited)
			assert.LessOrEqual(t, took.Seconds(), 1.4*best.Seconds(), "on 32 CPUs, a quarter of the time is that until the limit has grown")
		})
	}
}
