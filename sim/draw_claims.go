package sim

import (
	"math/rand/v2"
	"time"
)

// withClaims adds resource claims to three quarters of the pods of one seed in five, as
// withProbes adds probes: one of the pod, one that several pods share, or both, of two
// drivers. It adds faults of the drivers, pods that are deleted after a lost response, and
// kills while claims are prepared or unprepared, with or without the removal of the pod
// while no agent runs. Static pods have no claims.
func withClaims(seed uint64, o Options, s Schedule) Schedule {
	if seed%5 != 4 {
		return s
	}
	d := draw{Rand: rand.New(rand.NewPCG(seed, 0xc1a1))}
	var more []Step
	for i := range s {
		uid := s[i].podUID()
		roll := hash(seed, 14, 0, 0, string(uid))
		if s[i].Do == Add && !s[i].Shape.Static {
			s[i].Shape.Claims = [][]string{nil, {"gpu-" + string(uid)}, {"nic-shared"}, {"gpu-" + string(uid), "nic-shared"}}[roll%4]
		}
		if (s[i].Do == Add || s[i].Do == Delete) && !o.NoKills && d.IntN(4) == 0 {
			kill := Step{At: s[i].At + time.Duration(d.IntN(40))*time.Millisecond, Do: Kill, Count: 1 + d.IntN(6), After: d.IntN(2) == 0, Down: d.seconds(20)}
			more = append(more, kill)
			if d.IntN(2) == 0 { // the next agent has only the checkpoint
				more = append(more, Step{At: kill.At + kill.Down/2, Do: Vanish, Pod: s[i].Pod, UID: s[i].UID})
			}
		}
		if s[i].Do == Add && !o.NoFaults && d.IntN(4) == 0 { // a claim that the pod has never used is prepared
			more = append(more,
				Step{At: s[i].At, Do: Fault, Calls: prepareCall, Kind: Lost, Percent: 100, For: 3 * time.Second},
				Step{At: s[i].At + time.Second, Do: Delete, Pod: s[i].Pod, UID: s[i].UID})
		}
	}
	if o.NoFaults {
		return s.with(more...)
	}
	for range 1 + d.IntN(3) {
		fault := Step{
			At: d.at(o), Do: Fault, Calls: pick(&d, driverCalls, driverCalls, prepareCall, unprepareCall, getClaimCall),
			Kind: pick(&d, Error, Lost, Lost, Slow, Hung), Percent: pick(&d, 50, 100), For: d.seconds(120),
		}
		if fault.Calls == driverCalls {
			fault.Kind = pick(&d, fault.Kind, Away, Lie)
		}
		if fault.Kind == Slow {
			fault.Delay = d.seconds(20)
		}
		more = append(more, fault)
	}
	return s.with(more...)
}
