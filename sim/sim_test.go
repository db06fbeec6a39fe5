package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/sim"
)

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

// inv-1 … inv-11, inv-14, inv-16 … inv-18: see Invariants.
func TestInvariantsHold(t *testing.T) {
	// CI has 10,000 (.ci/run simulate), these among them.
	seedrun.Each(t, 40, func(t *testing.T, seed uint64) { sim.Check(t, sim.Config{Seed: seed}) })
}

// Every run of a seed is the same, which the replay of a failure relies on.
func TestASeedIsARun(t *testing.T) {
	seedrun.Each(t, 40, func(t *testing.T, seed uint64) {
		first := strings.Split(text(runSeed(t, sim.Config{Seed: seed}).Trace), "\n")
		again := strings.Split(text(runSeed(t, sim.Config{Seed: seed}).Trace), "\n")
		for i := range min(len(first), len(again)) {
			require.Equal(t, first[i], again[i], "seed %d", seed)
		}
		require.Len(t, again, len(first), "seed %d", seed)
	})
}

func TestInvariantsHaveNamesAndDescriptions(t *testing.T) {
	names := map[string]bool{}
	for _, inv := range sim.Invariants() {
		assert.False(t, names[inv.Name], inv.Name)
		names[inv.Name] = true
		assert.NotEmpty(t, inv.Description, inv.Name)
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
