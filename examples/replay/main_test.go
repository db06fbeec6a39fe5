package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// The pod of the recording is not started: an agent that does so diverges and violates no invariant.
func TestARecordingIsShrunkAndWritten(t *testing.T) {
	dir, small, test := endless(t), filepath.Join(t.TempDir(), "small.kprec"), filepath.Join(t.TempDir(), "small_test.go")
	var out bytes.Buffer
	ok, err := run(t.Context(), []string{"--shrink", "--out", small, "--as-test", test, dir}, &out, io.Discard)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.Contains(t, out.String(), "Shrunk from 4 frames of 2m0s to 3 of ")
	text, err := os.ReadFile(test)
	require.NoError(t, err)
	assert.Contains(t, string(text), "func TestReplay(t *testing.T) {")

	out.Reset()
	ok, err = run(t.Context(), []string{small}, &out, io.Discard)
	require.NoError(t, err)
	assert.False(t, ok, "the small recording diverges as well")
	assert.Contains(t, out.String(), "First divergence")

	out.Reset()
	ok, err = run(t.Context(), []string{"--invariant", "all", "--as-test", test, dir}, &out, io.Discard)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Contains(t, out.String(), "invariants hold")
	_, err = run(t.Context(), []string{"--invariant", "back-off", "--shrink", "--out", small, dir}, io.Discard, io.Discard)
	assert.ErrorContains(t, err, "replay with the code that was recorded")
}

// endless returns the directory of a recording of two minutes.
func endless(t *testing.T) string {
	dir := t.TempDir()
	pod := func(name string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "main", Image: "nginx"}}, RestartPolicy: v1.RestartPolicyAlways,
		}}
	}
	file, err := os.Create(filepath.Join(dir, "a.kprec"))
	require.NoError(t, err)
	require.NoError(t, record.Write(file, slices.Values([]record.Frame{
		{Header: &record.Header{Start: time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC), File: 1, Node: "node-1"}},
		{At: time.Second, Pods: &record.Pods{Source: "api", Changed: []*v1.Pod{pod("web")}}},
		{At: time.Minute, Pods: &record.Pods{Source: "api", Changed: []*v1.Pod{pod("other")}}},
		{At: 2 * time.Minute, End: &record.End{}},
	})))
	require.NoError(t, file.Close())
	return dir
}

func TestDecisionsAreReported(t *testing.T) {
	var out bytes.Buffer
	ok, err := run(t.Context(), []string{"--decisions", "--all", endless(t)}, &out, io.Discard)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.Contains(t, out.String(), "0 recorded decisions, of which the replay makes 0 (0.0 %), 0 of them at other times; it makes 6 others\n")
	assert.Contains(t, out.String(), "First difference, at 2026-01-01T03:00:01.")
	assert.Contains(t, out.String(), "replayed: StartContainer main, attempt 0")
}

func TestTheInvariantsAreListed(t *testing.T) {
	var out bytes.Buffer
	ok, err := run(t.Context(), []string{"--list-invariants"}, &out, io.Discard)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Contains(t, out.String(), "one-live-instance ")
	assert.Contains(t, out.String(), "grace-period-given ")
}

func TestInvalidArguments(t *testing.T) {
	var out bytes.Buffer
	_, err := run(t.Context(), []string{"--help"}, &out, io.Discard)
	assert.ErrorIs(t, err, flag.ErrHelp)
	assert.Contains(t, out.String(), "-until")
	for _, args := range [][]string{{}, {"a", "b"}, {"--unknown"}, {"/does/not/exist"}, {t.TempDir()}, {"--from", "x", recorded(t)},
		{"--shrink", recorded(t)}, {"--shrink", "--out", "x", recorded(t)}, {"--invariant", "unknown", recorded(t)}, {"--as-test", "/does/not/exist", recorded(t)},
	} {
		_, err := run(t.Context(), args, io.Discard, io.Discard)
		assert.Error(t, err, "%q", args)
	}
}
