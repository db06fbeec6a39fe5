package simcri_test

import (
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

var (
	seeds = flag.Uint64("seeds", 0, "how many seeds TestSeeds goes through")
	on    = flag.Bool("on", false, "whether TestSeeds goes on after a seed that fails")
)

// TestSeeds ends with the first seed that breaks a law. It is for people, and for
// package internal/mutants, as that of package sim.
func TestSeeds(t *testing.T) {
	if *seeds == 0 {
		t.Skip("-seeds says how many")
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
				r := runSeed(t, seed)
				var laws []string
				for _, v := range r.Violations {
					if !slices.Contains(laws, v.Law) {
						laws = append(laws, v.Law)
					}
				}
				if len(laws) > 0 {
					failed.Store(true)
					t.Errorf("seed %d broke %s\n%s", seed, strings.Join(laws, ", "), r.Violations[0])
				}
			}
		})
	}
}
