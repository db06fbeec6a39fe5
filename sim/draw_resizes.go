package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// withResizes adds CPU requests to the containers of one seed in four, as withProbes
// adds probes, and Resize steps at any time or just after an exit or a kill.
func withResizes(seed uint64, o Options, s Schedule) Schedule {
	if seed%4 != 2 {
		return s
	}
	d := draw{Rand: rand.New(rand.NewPCG(seed, 0x2e512e))}
	var more []Step
	for i := range s {
		if s[i].Do != Add {
			continue
		}
		s[i].Shape.Containers = slices.Clone(s[i].Shape.Containers)
		for j := range s[i].Shape.Containers {
			c := &s[i].Shape.Containers[j]
			if roll := hash(seed, 13, 0, 0, string(s[i].podUID()), c.Name); c.Kind == Main && roll%4 > 0 {
				c.CPU = 100 * (1 + int64(roll>>8%8))
			}
			if c.CPU > 0 && d.IntN(2) == 0 {
				more = append(more, Step{At: d.at(o), Do: Resize, Pod: s[i].Pod, UID: s[i].UID, Container: c.Name, CPU: 100 * (1 + d.Int64N(20))})
			}
		}
	}
	for _, step := range s {
		if (step.Do == Exit || step.Do == Crash || step.Do == Kill) && len(more) > 0 {
			resize := more[d.IntN(len(more))]
			resize.At, resize.CPU = step.At+time.Duration(d.IntN(50))*time.Millisecond, 100*(1+d.Int64N(20))
			more = append(more, resize)
		}
	}
	return s.with(more...)
}
