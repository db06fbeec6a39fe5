package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// hurry returns what one seed of 16 has besides: after each deletion whose first
// KillPod has its answer lost, an eviction with more time than that. Chance alone
// meets this once in hundreds of seeds, and a grace period that grows shows there
// only (pw-26). It draws from a source of its own, so that other seeds stay.
func hurry(seed uint64, s Schedule) (more Schedule) {
	if seed%16 != 15 {
		return nil
	}
	d := rand.New(rand.NewPCG(seed, 0x4a57e))
	for _, step := range s {
		if step.Do != Delete {
			continue
		}
		evict := step
		evict.Do, evict.Grace = Evict, 1+2*step.Grace+d.Int64N(30)
		evict.At += time.Duration(2100+d.IntN(4000)) * time.Millisecond
		more = append(more, Step{At: step.At, Do: Fault, Calls: "KillPod", Kind: Lost, Percent: 100, For: 2 * time.Second}, evict)
	}
	return more
}

// withHurry adds hurry to a drawn schedule.
func withHurry(seed uint64, o Options, s Schedule) Schedule {
	if o.NoFaults {
		return s
	}
	s = append(s, hurry(seed, s)...)
	slices.SortStableFunc(s, func(a, b Step) int { return int(a.At - b.At) })
	return s
}
