package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// withCheckpoints adds checkpoints of pods, and pods that are restored from them, if Options has them: of each pod that
// is added to the API without claims. The faults and kills are those that matter to them: the call fails, hangs, or
// loses its response; a restored container is not started; the agent is killed during the restore; the sandbox is lost
// then or later, or an operator removes it.
func withCheckpoints(seed uint64, o Options, s Schedule) Schedule {
	if !o.Checkpoints {
		return s
	}
	d := draw{Rand: rand.New(rand.NewPCG(seed, 0xc4ec))}
	var more []Step
	for i, add := range s {
		if add.Do != Add || add.Shape.Static || len(add.Shape.Claims) > 0 {
			continue
		}
		at := add.At + d.seconds(60)
		more = append(more, Step{At: at, Do: Checkpoint, Pod: add.Pod, UID: add.UID})
		at += d.seconds(30)
		for j := range 1 + d.IntN(2) {
			name := fmt.Sprintf("%s-copy-%d-%d", add.Pod, i, j)
			at += d.seconds(20)
			of := Step{At: at, Do: Restore, Pod: name, UID: types.UID(name), From: add.Pod}
			more = append(append(more, of), d.duringRestore(of, o)...)
		}
	}
	return s.with(more...)
}

// duringRestore draws what happens to a pod that is restored.
func (d *draw) duringRestore(of Step, o Options) (more []Step) {
	soon := func() time.Duration { return of.At + time.Duration(d.IntN(60))*time.Millisecond }
	if !o.NoFaults && d.IntN(2) == 0 {
		more = append(more, Step{
			At: of.At - 40*time.Second, Do: Fault, Calls: pick(d, "CheckpointPod", "RestorePod", "RestorePod", "StartContainer", "runtime"),
			Kind: pick(d, Error, Lost, Hung), Percent: pick(d, 50, 100), For: 40*time.Second + d.seconds(20),
		})
		more[0].At = max(more[0].At, 0)
	}
	if !o.NoKills && d.IntN(2) == 0 {
		more = append(more, Step{At: of.At, Do: Kill, Count: 1 + d.IntN(40), After: d.IntN(2) == 0, Down: d.seconds(20)})
	}
	for range d.IntN(3) {
		s := Step{At: soon(), Do: pick(d, Crash, Crash, Crash, Remove, Delete, Evict), Pod: of.Pod, UID: of.UID}
		if d.IntN(2) == 0 {
			s.At = of.At + d.seconds(60)
		}
		more = append(more, s)
	}
	return more
}
