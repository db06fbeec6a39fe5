package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/cluster"
)

func TestRankingsAreCompared(t *testing.T) {
	var tables [2]bytes.Buffer
	var samples int
	dir := t.TempDir()
	for i := range tables {
		cfg := workload(1, 3, 300)
		cfg.Duration = 12 * time.Hour
		require.NoError(t, study(t.Context(), cfg, &tables[i], dir, func(cluster.Sample) { samples++ }))
	}
	t.Logf("%s", &tables[0])
	assert.Equal(t, tables[0].String(), tables[1].String(), "a seed gives the same cluster")
	assert.Positive(t, samples)
	lines := strings.Split(strings.TrimSpace(tables[0].String()), "\n")
	require.Len(t, lines, 3+len(rankings))
	kubelet, youngest := strings.Fields(lines[3]), strings.Fields(lines[4])
	assert.NotEqual(t, "0", kubelet[1], "pods are evicted")
	assert.NotEqual(t, kubelet[1:], youngest[1:], "the rankings lead to different outcomes")
	for _, name := range []string{"kubelet.csv", "kubelet.svg", "youngest.csv", "youngest.svg"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.NotEmpty(t, text)
	}
	assert.Error(t, study(t.Context(), workload(1, 0, 1), &tables[0], "", nil), "without a node")
}
