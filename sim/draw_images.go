package sim

import (
	"math/rand/v2"
	"time"
)

// withCollections has images removed in one seed in four, often within seconds after a
// pod comes: while its containers are started. It draws from a source of its own.
func withCollections(seed uint64, s Schedule) Schedule {
	if seed%4 != 3 {
		return s
	}
	d := draw{Rand: rand.New(rand.NewPCG(seed, 0x16a6e))}
	var more []Step
	for _, step := range s {
		if step.Do == Add || step.Do == Change || d.IntN(8) == 0 {
			more = append(more, Step{At: step.At + time.Duration(d.IntN(4000))*time.Millisecond, Do: Collect})
		}
	}
	if d.IntN(2) == 0 && len(more) > 0 {
		more = append(more, Step{At: more[0].At, Do: Fault, Calls: "RemoveImage", Kind: pick(&d, Slow, Hung, Error, Lost), Percent: 100, For: d.seconds(60), Delay: d.seconds(10)})
	}
	return s.with(more...)
}
