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
	seeds    = flag.Uint64("seeds", 0, "number of seeds that TestSeeds runs")
	seed     = flag.Uint64("seed", 0, "first seed of TestSeeds, and the seed of TestReplay")
	shrink   = flag.Bool("shrink", true, "whether TestSeeds searches for the smallest schedule that fails")
	on       = flag.Bool("on", false, "whether TestSeeds continues after a seed that fails")
	schedule = flag.String("schedule", "", "file with the schedule for TestReplay; empty: the schedule of the seed")
)

// TestSeeds stops at the first seed that violates an invariant. It is for manual runs
// and for package internal/mutants; the other tests have their own seeds.
func TestSeeds(t *testing.T) {
	if *seeds == 0 {
		t.Skip("-seeds is not set")
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
					virtual.Add(int64(report.Duration))
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

// check is sim.Check, or the same without a search for the smallest schedule.
func check(t *testing.T, cfg sim.Config) (report *sim.Report) {
	if *shrink {
		return sim.Check(t, cfg)
	}
	var err error
	synctest.Test(t, func(t *testing.T) { report, err = sim.Run(t.Context(), cfg) })
	require.NoError(t, err)
	var violated []string
	for _, v := range report.Violations {
		if !slices.Contains(violated, v.Invariant) {
			violated = append(violated, v.Invariant)
		}
	}
	if len(violated) > 0 {
		t.Errorf("seed %d violated %s\n%s", cfg.Seed, strings.Join(violated, ", "), report.Violations[0])
	}
	return report
}

// TestReplay repeats the run of a failed test.
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

// Schedules that once violated an invariant. Each is run with several seeds, because
// the failure depended on latencies.
func TestSchedulesOfPastFailures(t *testing.T) {
	for name, text := range map[string]string{
		"a pod that another client marked as failed is stopped, also if the agent observes that before its first relist": `
			0s add web main:c=run
			5s kill down=10s
			8s fail web`,
		"a static pod that is evicted while it waits for another one is reported as failed": `
			0s add web static grace=30 main:c=ignoreTERM
			5s add web uid=web-2 static main:c=run
			6s evict web uid=web-2`,
		"the claims of a pod that another client marked as failed after a reboot are unprepared": `
			0s add web claims=gpu-web,nic-shared main:c=run
			49s fault SyncPod kind=error for=14s
			50s reboot down=0s
			63s kill down=3s
			65s fail web`,
		"a static pod whose manifest is removed while no agent runs is stopped": `
			0s add web static main:c=run
			5s kill down=10s
			8s delete web`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sim.Parse(text)
			require.NoError(t, err)
			for seed := range uint64(40) {
				sim.Check(t, sim.Config{Seed: seed, Schedule: s})
			}
		})
	}
}
