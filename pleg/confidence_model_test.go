package pleg

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A relister decides how long it is until the next relist.
type relister interface {
	wait() time.Duration
	settle() time.Duration                  // the latest relist after a change
	observed(now time.Time, announced bool) // a change, by its event or by a relist
	relisted(now time.Time, clean bool)     // clean: every change had an event
}

// adaptive is the Generator's strategy.
type adaptive struct{ confidence }

func (a *adaptive) wait() time.Duration   { return a.period() }
func (a *adaptive) settle() time.Duration { return settleDelay }

func (a *adaptive) observed(now time.Time, announced bool) {
	if announced {
		a.eventReceived(now)
		a.announced(now)
	} else {
		a.missed(now)
	}
}

func (a *adaptive) relisted(now time.Time, clean bool) { a.listed(now, now, clean) }

// fixed relists every MaxPeriod while the stream of events is open, whatever it announces.
type fixed time.Duration

func (f fixed) wait() time.Duration      { return time.Duration(f) }
func (f fixed) settle() time.Duration    { return time.Duration(f) }
func (f fixed) observed(time.Time, bool) {}
func (f fixed) relisted(time.Time, bool) {}

// doubling returns to Period when a change had no event, and doubles the wait otherwise.
type doubling struct{ period, min, max time.Duration }

func (d *doubling) wait() time.Duration { return d.period }

func (d *doubling) settle() time.Duration { return d.max }

func (d *doubling) observed(_ time.Time, announced bool) {
	if !announced {
		d.period = d.min
	}
}

func (d *doubling) relisted(_ time.Time, clean bool) {
	if clean {
		d.period = min(2*d.period, d.max)
	}
}

// model simulates a node for a day: changes are random, one per mean, and have an
// event with the given probability. It returns the relists per hour, and the delays
// after which changes were observed.
func model(r relister, mean time.Duration, probability float64, seed uint64) (relists float64, delays []time.Duration) {
	const day = 24 * time.Hour
	dice := rand.New(rand.NewPCG(seed, 1))
	change := func(after time.Time) time.Time {
		return after.Add(time.Duration(dice.ExpFloat64() * float64(mean)))
	}
	start := time.Unix(0, 0)
	next, relist := change(start), start.Add(r.wait())
	var missed []time.Time
	for relist.Sub(start) < day {
		if next.Before(relist) {
			if dice.Float64() < probability {
				r.observed(next, true)
				delays = append(delays, 0)
				if settled := next.Add(r.settle()); settled.Before(relist) {
					relist = settled
				}
			} else {
				missed = append(missed, next)
			}
			next = change(next)
			continue
		}
		relists++
		for _, at := range missed {
			r.observed(relist, false)
			delays = append(delays, relist.Sub(at))
		}
		r.relisted(relist, len(missed) == 0)
		missed = nil
		relist = relist.Add(r.wait())
	}
	slices.Sort(delays)
	return relists / day.Hours(), delays
}

// The adaptive period is worth its code for runtimes whose event stream loses many
// events: with simpler schemes every lost event delays a change by minutes,
// permanently. The table is in docs/benchmarks.md.
func TestTheAdaptivePeriodKeepsTheDelayOfLostEventsShort(t *testing.T) {
	const period, maxPeriod = time.Second, 5 * time.Minute
	for _, mean := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		for _, probability := range []float64{1, 0.99, 0.9, 0.5, 0} {
			trusting := newConfidence(period, maxPeriod)
			trusting.streamBegan(time.Unix(0, 0).Add(-time.Minute))
			trusting.streamWorks()
			worst := map[string]time.Duration{}
			relists := map[string]float64{}
			for _, scheme := range []struct {
				name string
				r    relister
			}{
				{"adaptive", &adaptive{trusting}}, {"fixed", fixed(maxPeriod)}, {"doubling", &doubling{period, period, maxPeriod}},
			} {
				n, delays := model(scheme.r, mean, probability, 1)
				worst[scheme.name], relists[scheme.name] = delays[len(delays)*99/100], n
				t.Logf("| %v | %v %% | %s | %.0f | %v | %v |", mean, probability*100, scheme.name, n,
					worst[scheme.name].Round(100*time.Millisecond), delays[len(delays)-1].Round(100*time.Millisecond))
			}
			what := fmt.Sprintf("a change every %v, %v %% announced", mean, probability*100)
			if probability <= 0.5 {
				assert.LessOrEqual(t, worst["adaptive"], 2*period, what)
				assert.Greater(t, worst["fixed"], 4*time.Minute, what)
				assert.Greater(t, worst["doubling"], 20*time.Second, what)
			}
			if probability == 1 {
				assert.Less(t, relists["adaptive"], 1.05*float64(time.Hour/settleDelay), what)
			}
		}
	}
}
