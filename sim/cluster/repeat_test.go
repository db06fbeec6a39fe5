package cluster_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/cluster"
)

// write writes everything that a report has.
func write(t testing.TB, r *cluster.Report, w io.Writer) {
	t.Helper()
	require.NoError(t, r.WritePods(w))
	require.NoError(t, r.WriteNodes(w))
	require.NoError(t, r.WriteSamples(w))
	require.NoError(t, r.WriteSVG(w))
}

// hashOf returns the hash of the report and of all events.
func hashOf(t testing.TB, cfg cluster.Config) string {
	t.Helper()
	h := sha256.New()
	cfg.Hooks.Event = func(e cluster.Event) { _, _ = io.WriteString(h, e.String()+"\n") }
	write(t, run(t, cfg), h)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// golden is the hash of the report of the seed on every machine. A change of the model
// changes it: the failing test prints the new one.
const golden = "692c9becc4ce75385349a2e27e2fc8d3"

func TestTwentyRunsOfASeedHaveOneHash(t *testing.T) {
	hashes := map[string]int{}
	for range 20 {
		hashes[hashOf(t, mixed(7, 4, 300, 6*time.Hour))]++
	}
	assert.Equal(t, map[string]int{golden: 20}, hashes)
	assert.NotEqual(t, golden, hashOf(t, mixed(8, 4, 300, 6*time.Hour)), "another seed is another simulation")
}

// The hash also holds while other simulations run, and does not depend on the order of
// Config.Images, which is a map.
func TestSimulationsAreIndependent(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, golden, hashOf(t, mixed(7, 4, 300, 6*time.Hour)))
		})
	}
}
