package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

func TestNoLawIsBroken(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			report, err := sim.Run(t.Context(), sim.Config{Seed: seed})
			require.NoError(t, err, "seed %d", seed)
			if !assert.Empty(t, report.Violations, "seed %d", seed) {
				for _, e := range report.Trace {
					t.Log(e)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}

func TestASchedulesTextIsTheSchedule(t *testing.T) {
	for seed := range uint64(200) {
		s := sim.Draw(seed, sim.Options{})
		again, err := sim.Parse(s.String())
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, s.String(), again.String(), "seed %d", seed)
	}
}

// text returns a trace as text.
func text(trace []sim.Entry) string {
	var b strings.Builder
	for _, e := range trace {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// runSeed runs a seed in a bubble of its own.
func runSeed(t *testing.T, cfg sim.Config) (report *sim.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		report, err = sim.Run(t.Context(), cfg)
		require.NoError(t, err, "seed %d", cfg.Seed)
	})
	return report
}

func TestASeedIsARun(t *testing.T) {
	for seed := range uint64(100) {
		first := strings.Split(text(runSeed(t, sim.Config{Seed: seed}).Trace), "\n")
		for range 2 {
			again := strings.Split(text(runSeed(t, sim.Config{Seed: seed}).Trace), "\n")
			for i := range min(len(first), len(again)) {
				require.Equal(t, first[i], again[i], "seed %d", seed)
			}
			require.Len(t, again, len(first), "seed %d", seed)
		}
	}
}
