package sim

import (
	"math/rand/v2"
	"time"
)

// withCollections adds Collect steps in one seed in four, most of them within seconds
// after a pod is added, while its containers start. A separate random source keeps the
// schedules of other seeds unchanged.
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
