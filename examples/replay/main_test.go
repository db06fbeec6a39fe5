package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/sim/record"
)

// recorded writes a recording of a source, whose pod no agent starts.
func recorded(t *testing.T) string {
	dir := t.TempDir()
	r, err := record.New(record.Config{Dir: dir, Node: "node-1"})
	require.NoError(t, err)
	source := r.Source(podsource.APISource, podsource.Func(func(_ context.Context, set func([]*v1.Pod)) error {
		set([]*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}})
		return nil
	}))
	require.NoError(t, source.Run(t.Context(), func([]*v1.Pod) {}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Run(ctx))
	return dir
}

func TestAReplayIsReported(t *testing.T) {
	dir := recorded(t)
	picture := filepath.Join(t.TempDir(), "picture.svg")
	var out bytes.Buffer
	ok, err := run(t.Context(), []string{"--draw", picture, "--from", "default/web", "--repeat=3", dir}, &out, io.Discard)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Contains(t, out.String(), `of node "node-1"`)
	assert.Contains(t, out.String(), "No divergence\n")
	assert.Contains(t, out.String(), "3 replays with the same digest in ")
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.Contains(t, string(svg), "<svg")
}

func TestInvalidArguments(t *testing.T) {
	var out bytes.Buffer
	_, err := run(t.Context(), []string{"--help"}, &out, io.Discard)
	assert.ErrorIs(t, err, flag.ErrHelp)
	assert.Contains(t, out.String(), "-until")
	for _, args := range [][]string{{}, {"a", "b"}, {"--unknown"}, {"/does/not/exist"}, {t.TempDir()}, {"--from", "x", recorded(t)}} {
		_, err := run(t.Context(), args, io.Discard, io.Discard)
		assert.Error(t, err, "%q", args)
	}
}
