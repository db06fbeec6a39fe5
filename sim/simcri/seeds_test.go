package simcri_test

import (
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubeparts/kubeparts/sim"
)

var (
	seeds = flag.Uint64("seeds", 0, "number of seeds that TestSeeds runs")
	on    = flag.Bool("on", false, "whether TestSeeds continues after a seed that fails")
)

// TestSeeds stops at the first seed that violates an invariant. It is for manual runs
// and for package internal/mutants, as that of package sim.
func TestSeeds(t *testing.T) {
	if *seeds == 0 {
		t.Skip("-seeds is not set")
	}
	var next atomic.Uint64
	var failed atomic.Bool
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for !failed.Load() || *on {
				seed := next.Add(1) - 1
				if seed >= *seeds {
					return
				}
				r := runSeed(t, seed, sim.Options{})
				var violated []string
				for _, v := range r.Violations {
					if !slices.Contains(violated, v.Invariant) {
						violated = append(violated, v.Invariant)
					}
				}
				if len(violated) > 0 {
					failed.Store(true)
					t.Errorf("seed %d violated %s\n%s", seed, strings.Join(violated, ", "), r.Violations[0])
				}
			}
		})
	}
}
