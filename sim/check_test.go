package sim_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

var (
	seeds    = flag.Uint64("seeds", 0, "how many seeds TestSeeds goes through")
	seed     = flag.Uint64("seed", 0, "the first seed of TestSeeds, the one of TestReplay")
	shrink   = flag.Bool("shrink", true, "whether TestSeeds looks for the least schedule that fails")
	on       = flag.Bool("on", false, "whether TestSeeds goes on after a seed that fails")
	schedule = flag.String("schedule", "", "file with the schedule for TestReplay; none: the one of the seed")
)

// TestSeeds ends with the first seed that breaks a law. It is for people, and for
// package internal/mutants; other tests here have seeds of their own.
func TestSeeds(t *testing.T) {
	if *seeds == 0 {
		t.Skip("-seeds says how many")
	}
	begun := time.Now()
	var next, steps, virtual atomic.Int64
	var failed atomic.Bool
	t.Run("workers", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for !failed.Load() {
					n := uint64(next.Add(1)) - 1
					if n >= *seeds {
						return
					}
					report := check(t, sim.Config{Seed: *seed + n})
					if t.Failed() && !*on {
						failed.Store(true)
						return
					}
					steps.Add(int64(len(report.Schedule)))
					virtual.Add(int64(report.Took))
				}
			})
		}
	})
	if !t.Failed() {
		took := time.Since(begun)
		t.Logf("%d seeds, %d steps, %v of virtual time in %v: %.0f seeds/s", *seeds, steps.Load(),
			time.Duration(virtual.Load()).Round(time.Hour), took.Round(time.Millisecond), float64(*seeds)/took.Seconds())
	}
}

// check is sim.Check, or the same without a search for the least schedule.
func check(t *testing.T, cfg sim.Config) (report *sim.Report) {
	if *shrink {
		return sim.Check(t, cfg)
	}
	var err error
	synctest.Test(t, func(t *testing.T) { report, err = sim.Run(t.Context(), cfg) })
	require.NoError(t, err)
	var laws []string
	for _, v := range report.Violations {
		if !slices.Contains(laws, v.Law) {
			laws = append(laws, v.Law)
		}
	}
	if len(laws) > 0 {
		t.Errorf("seed %d broke %s\n%s", cfg.Seed, strings.Join(laws, ", "), report.Violations[0])
	}
	return report
}

// TestReplay runs what a failed test has printed.
func TestReplay(t *testing.T) {
	cfg := sim.Config{Seed: *seed}
	if *schedule != "" {
		text, err := os.ReadFile(*schedule)
		require.NoError(t, err)
		cfg.Schedule, err = sim.Parse(string(text))
		require.NoError(t, err)
	}
	report := sim.Check(t, cfg)
	if testing.Verbose() && report != nil {
		for _, e := range report.Trace {
			t.Log(e)
		}
	}
}

// What was found once stays found. Each schedule is run with a few seeds, since
// it depends on moments.
func TestWhatWasFoundOnceStaysFound(t *testing.T) {
	for name, text := range map[string]string{
		"a pod that somebody has called failed is stopped, also if the agent hears of it before it looks": `
			0s add web main:c=run
			5s kill down=10s
			8s fail web`,
		"a static pod that is evicted while it waits for its turn is told to have failed": `
			0s add web static grace=30 main:c=run_stubborn
			5s add web uid=web-2 static main:c=run
			6s evict web uid=web-2`,
		"a static pod whose manifest goes while no agent runs is stopped": `
			0s add web static main:c=run
			5s kill down=10s
			8s delete web`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sim.Parse(text)
			require.NoError(t, err)
			for seed := range uint64(20) {
				sim.Check(t, sim.Config{Seed: seed, Schedule: s})
			}
		})
	}
}
