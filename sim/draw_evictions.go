package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// lateEvictions returns additional steps for one seed in 16: the response of the first
// KillPod of each deletion is lost, and then the pod is evicted with a longer grace
// period. A grace period that grows (rule pw-26) is detected only there, and the other
// steps contain this case once in hundreds of seeds. A separate random source keeps the
// schedules of other seeds unchanged.
func lateEvictions(seed uint64, s Schedule) (more Schedule) {
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

// withLateEvictions adds lateEvictions to a drawn schedule.
func withLateEvictions(seed uint64, o Options, s Schedule) Schedule {
	if o.NoFaults {
		return s
	}
	s = append(s, lateEvictions(seed, s)...)
	slices.SortStableFunc(s, func(a, b Step) int { return int(a.At - b.At) })
	return s
}
