package simcri_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/simcri"
)

// memoryDir returns a directory that is in memory if there is such a thing here:
// an agent waits for the disk with each record that it writes.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "simcri")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// runSeed runs a seed in a bubble of its own.
func runSeed(t *testing.T, seed uint64, o sim.Options) (report *sim.Report) {
	t.Helper()
	dir, err := os.MkdirTemp(memoryDir(t), "")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		report, err = sim.Run(t.Context(), sim.Config{Seed: seed, Options: o, Machine: simcri.MachineIn(dir)})
		require.NoError(t, err, "seed %d", seed)
	})
	require.NoError(t, os.RemoveAll(dir))
	return report
}

// inv-1 … inv-11, inv-14 … inv-18, of the engine: see sim.Invariants.
func TestInvariantsHoldWithTheEngine(t *testing.T) {
	dir := memoryDir(t)
	seedrun.Each(t, 20, func(t *testing.T, seed uint64) {
		dir, err := os.MkdirTemp(dir, "seed")
		require.NoError(t, err)
		sim.Check(t, sim.Config{Seed: seed, Machine: simcri.MachineIn(dir)})
		require.NoError(t, os.RemoveAll(dir))
	})
}

// The same with pods that are restored from checkpoints of others.
func TestInvariantsHoldWithCheckpoints(t *testing.T) {
	dir := memoryDir(t)
	seedrun.Each(t, 20, func(t *testing.T, seed uint64) {
		dir, err := os.MkdirTemp(dir, "seed")
		require.NoError(t, err)
		sim.Check(t, sim.Config{Seed: seed, Options: sim.Options{Checkpoints: true}, Machine: simcri.MachineIn(dir)})
		require.NoError(t, os.RemoveAll(dir))
	})
}

// Every run of a seed is the same, which the replay of a failure relies on.
func TestASeedIsARunOfTheEngine(t *testing.T) {
	seedrun.Each(t, 12, func(t *testing.T, seed uint64) {
		o := sim.Options{Checkpoints: seed%2 == 1}
		first := strings.Split(text(runSeed(t, seed, o).Trace), "\n")
		again := strings.Split(text(runSeed(t, seed, o).Trace), "\n")
		for i := range min(len(first), len(again)) {
			require.Equal(t, first[i], again[i], "seed %d", seed)
		}
		require.Len(t, again, len(first), "seed %d", seed)
	})
}

// text returns a trace as text.
func text(trace []sim.Entry) string {
	var b strings.Builder
	for _, e := range trace {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}
