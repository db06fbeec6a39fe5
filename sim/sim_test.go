package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// inv-1 … inv-11, inv-14, inv-16 … inv-18: see Laws.
func TestNoLawIsBrokenWhateverHappens(t *testing.T) {
	forEachSeed(t, 300, func(t *testing.T, seed uint64) { sim.Check(t, sim.Config{Seed: seed}) })
}

func TestASeedIsARun(t *testing.T) {
	for seed := range uint64(40) {
		first := strings.Split(text(runSeed(t, sim.Config{Seed: seed}).Trace), "\n")
		again := strings.Split(text(runSeed(t, sim.Config{Seed: seed}).Trace), "\n")
		for i := range min(len(first), len(again)) {
			require.Equal(t, first[i], again[i], "seed %d", seed)
		}
		require.Len(t, again, len(first), "seed %d", seed)
	}
}

func TestALawHasANameASentenceAndRules(t *testing.T) {
	names := map[string]bool{}
	for _, law := range sim.Laws() {
		assert.False(t, names[law.Name], law.Name)
		names[law.Name] = true
		assert.NotEmpty(t, law.Says, law.Name)
		assert.NotEmpty(t, law.Rules, law.Name)
	}
}

// seedsOf returns which seeds to run: n of them, or as many as the environment
// says, where KUBEPARTS_SIM_SEEDS is how many and KUBEPARTS_SIM_FROM the first
// (0 if it is not set).
func seedsOf(t *testing.T, n uint64) (from, to uint64) {
	t.Helper()
	read := func(name string, value *uint64) {
		if text := os.Getenv(name); text != "" {
			var err error
			*value, err = strconv.ParseUint(text, 10, 64)
			require.NoError(t, err, name)
		}
	}
	read("KUBEPARTS_SIM_SEEDS", &n)
	read("KUBEPARTS_SIM_FROM", &from)
	return from, from + n
}

// forEachSeed runs the seeds, a few at a time.
func forEachSeed(t *testing.T, n uint64, check func(t *testing.T, seed uint64)) {
	from, to := seedsOf(t, n)
	begun := time.Now()
	t.Run("seeds", func(t *testing.T) {
		const shards = 4
		for shard := range uint64(shards) {
			t.Run(fmt.Sprint("of ", shard), func(t *testing.T) {
				t.Parallel()
				for seed := from + shard; seed < to && !t.Failed(); seed += shards {
					check(t, seed)
				}
			})
		}
	})
	t.Logf("%.0f seeds a second", float64(to-from)/time.Since(begun).Seconds())
}

// text returns a trace as text.
func text(trace []sim.Entry) string {
	var b strings.Builder
	for _, e := range trace {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}
