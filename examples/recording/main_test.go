package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/record"
)

func TestPrint(t *testing.T) {
	dir := t.TempDir()
	r, err := record.New(record.Config{Dir: dir, Node: "edge-1"})
	require.NoError(t, err)
	r.Draw("dice", 0.5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Run(ctx))

	var out strings.Builder
	require.NoError(t, run([]string{dir}, &out))
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 4)
	assert.Contains(t, lines[0], `header: file 1 of the recording of node "edge-1"`)
	assert.Contains(t, lines[1], "draw: dice: 0.5")

	files, err := record.Files(dir)
	require.NoError(t, err)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	cut := filepath.Join(dir, "cut")
	require.NoError(t, os.WriteFile(cut, data[:len(data)-1], 0o600))
	out.Reset()
	require.ErrorIs(t, run([]string{"--json", cut}, &out), record.ErrTruncated)
	assert.Contains(t, out.String(), `"draw":{"name":"dice","value":0.5}`)
}

func TestArguments(t *testing.T) {
	var out strings.Builder
	require.ErrorIs(t, run([]string{"--help"}, &out), flag.ErrHelp)
	assert.Contains(t, out.String(), "A damaged file is printed")
	assert.ErrorContains(t, run(nil, &out), "see --help")
	assert.ErrorContains(t, run([]string{"--none"}, &out), "see --help")
	assert.ErrorIs(t, run([]string{"none"}, &out), os.ErrNotExist)
	assert.ErrorContains(t, run([]string{t.TempDir()}, &out), "no recordings")
}
