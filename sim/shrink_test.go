package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

// randomly returns a schedule of n steps that are told apart by their pods.
func randomly(rng *rand.Rand, n int) sim.Schedule {
	var s sim.Schedule
	for i := range n {
		step := sim.Step{At: time.Duration(i)*time.Second + time.Duration(rng.IntN(900))*time.Millisecond}
		switch rng.IntN(3) {
		case 0:
			step.Do, step.Pod = sim.Delete, fmt.Sprint("p", i)
			step.Grace = rng.Int64N(30)
		case 1:
			step.Do, step.Calls, step.Kind, step.Percent = sim.Fault, "SyncPod", sim.Lost, rng.IntN(101)
			step.For = time.Duration(rng.IntN(60_000)) * time.Millisecond
		default:
			step.Do, step.Pod, step.Container, step.Code = sim.Exit, fmt.Sprint("p", i), "c", rng.Int32N(256)
		}
		s = append(s, step)
	}
	return s
}

func TestWhatIsShrunkStillFailsAndNeedsEachOfItsSteps(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := randomly(rng, 1+rng.IntN(60))
		needed := map[string]bool{} // it fails where all of these are
		for range rng.IntN(4) {
			if step := s[rng.IntN(len(s))]; step.Pod != "" {
				needed[step.Pod] = true
			}
		}
		faults := rng.IntN(3) // and at least so many faults, of more than 2 s each
		fails := func(s sim.Schedule) bool {
			found, long := map[string]bool{}, 0
			for _, step := range s {
				if needed[step.Pod] {
					found[step.Pod] = true
				}
				if step.Do == sim.Fault && step.For > 2*time.Second {
					long++
				}
			}
			return len(found) == len(needed) && long >= faults
		}
		before := slices.Clone(s)
		if !fails(s) {
			continue
		}
		least := sim.Shrink(s, 100_000, fails)
		assert.Equal(t, before, s, "seed %d: what it was given is not changed", seed)
		require.True(t, fails(least), "seed %d", seed)
		assert.Len(t, least, len(needed)+faults, "seed %d", seed)
		for i := range least {
			require.False(t, fails(slices.Delete(slices.Clone(least), i, i+1)), "seed %d: step %d is of no use", seed, i)
		}
		assert.True(t, slices.IsSortedFunc(least, func(a, b sim.Step) int { return int(a.At - b.At) }), "seed %d", seed)
		for _, step := range least {
			if step.Do == sim.Fault {
				assert.LessOrEqual(t, step.For, 4*time.Second, "seed %d: values are made smaller", seed)
				assert.Equal(t, 100, step.Percent)
			}
		}
		again, err := sim.Parse(least.String())
		require.NoError(t, err)
		assert.Equal(t, least.String(), again.String(), "what is printed can be replayed")
	}
}

func TestShrinkEndsWhenItsTriesAre(t *testing.T) {
	s := randomly(rand.New(rand.NewPCG(1, 0)), 200)
	for _, tries := range []int{1, 2, 10, 100} {
		n := 0
		least := sim.Shrink(s, tries, func(s sim.Schedule) bool { n++; return len(s) >= 100 })
		assert.LessOrEqual(t, n, tries)
		assert.GreaterOrEqual(t, len(least), 100, "it has failed")
	}
}

func TestAScheduleThatDoesNotFailIsNotShrunk(t *testing.T) {
	s := randomly(rand.New(rand.NewPCG(1, 0)), 5)
	assert.Equal(t, s, sim.Shrink(s, 100, func(sim.Schedule) bool { return false }))
	assert.Empty(t, sim.Shrink(nil, 100, func(sim.Schedule) bool { return true }))
}

func TestAPodIsShrunkToTheContainersThatMatter(t *testing.T) {
	s, err := sim.Parse(`
		1.5s add web policy=OnFailure grace=5 init:a=exit=0@1s side:b=ready=5s main:c=start=1s,exit=3@2.5s/Never/3:Restart main:d=run
		3s exit web/d code=7
	`)
	require.NoError(t, err)
	least := sim.Shrink(s, 1000, func(s sim.Schedule) bool {
		for _, step := range s {
			for _, c := range step.Shape.Containers {
				if c.Kind == sim.Main && c.Behavior.Exit != nil && c.Behavior.Exit.After > time.Second {
					return true
				}
			}
		}
		return false
	})
	assert.Equal(t, "0s add web main:c=exit=1@2s\n", least.String())
}
