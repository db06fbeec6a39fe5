//go:build mutants

package mutants_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/sim/replay"
)

var (
	scenarioName = flag.String("scenario", "", "scenario that TestIntegrationScenario records")
	scenarioDir  = flag.String("scenario-dir", "", "directory for its results")
	only         = flag.String("only", "", "mutants of TestIntegrationMutantsAreShrunkToTests, separated by commas; empty: all")
)

// An outcome is what TestIntegrationScenario writes to scenario.json.
type outcome struct {
	Bytes, Frames, Shrunk int
	Length, ShrunkLength  time.Duration
	Violated              []string // in the replay of the whole recording
	Lines, Replays        int
	ReplayTook, Took      time.Duration // of one replay, and of the shrinking
}

// TestIntegrationScenario records an agent of this test binary on a containerd, replays the recording,
// and shrinks it to a test. TestIntegrationMutantsAreShrunkToTests runs it in binaries with mutants.
func TestIntegrationScenario(t *testing.T) {
	if *scenarioName == "" {
		t.Skip("no -scenario")
	}
	s := scenarios[*scenarioName]
	require.NotNil(t, s.do)
	dir := filepath.Join(*scenarioDir, "recording")
	runScenario(t, s, dir)
	result := outcome{Bytes: sizeOf(t, dir)}
	r, err := replay.Open(dir)
	require.NoError(t, err)
	require.NoError(t, r.Damage)
	result.Frames, result.Length = frameCount(r), r.Length
	began := time.Now()
	checked, err := replay.Run(t.Context(), r, replay.Options{Invariants: replay.InvariantNames()})
	require.NoError(t, err)
	result.ReplayTook = time.Since(began)
	for _, v := range checked.Violations {
		result.Violated = append(result.Violated, v.Invariant)
	}
	t.Log(checked.Explain())
	require.Contains(t, result.Violated, s.invariant)
	began = time.Now()
	small, err := replay.Shrink(t.Context(), r, replay.ShrinkOptions{Invariant: s.invariant, Progress: func(p replay.ShrinkProgress) { result.Replays = p.Replays }})
	require.NoError(t, err)
	result.Took, result.Shrunk, result.ShrunkLength = time.Since(began), frameCount(small), small.Length
	var text, data bytes.Buffer
	require.NoError(t, small.AsTest(&text, replay.TestFile{Invariants: []string{s.invariant}}))
	result.Lines = bytes.Count(text.Bytes(), []byte("\n"))
	require.NoError(t, os.WriteFile(filepath.Join(*scenarioDir, "small_test.go"), text.Bytes(), 0o644))
	require.NoError(t, small.Write(&data))
	require.NoError(t, os.WriteFile(filepath.Join(*scenarioDir, "small.kprec"), data.Bytes(), 0o600))
	written, err := json.MarshalIndent(result, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(*scenarioDir, "scenario.json"), written, 0o644))
}

func frameCount(r *replay.Recording) (n int) {
	for range r.Frames() {
		n++
	}
	return n
}

func sizeOf(t *testing.T, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		n += int(info.Size())
	}
	return n
}

// Each scenario is recorded with its mutant on a containerd. The test that its recording is shrunk to
// fails with the mutant and passes without it. The results are logged as the table of docs/recording.md.
func TestIntegrationMutantsAreShrunkToTests(t *testing.T) {
	lab.Need(t, "containerd")
	out := map[string]string{}
	for _, m := range load(t) {
		s, ok := scenarios[m.Name]
		if !ok || *only != "" && !strings.Contains(","+*only+",", ","+m.Name+",") {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			dir := t.TempDir()
			after, err := m.Apply(source(t, m.File))
			require.NoError(t, err)
			mutated := overlay(t, dir, map[string]string{m.File: after})
			binary := filepath.Join(dir, "scenario.test")
			run(t, root, "go", "test", "-c", "-tags", "mutants", "-ldflags=-s -w", "-overlay", mutated, "-o", binary, "./internal/mutants")
			log := run(t, filepath.Join(root, "internal", "mutants"), binary, "-test.run=^TestIntegrationScenario$", "-test.v", "-test.timeout=10m", "-scenario", m.Name, "-scenario-dir", dir)
			t.Log(last(log, 40))
			text, err := os.ReadFile(filepath.Join(dir, "scenario.json"))
			require.NoError(t, err)
			var o outcome
			require.NoError(t, json.Unmarshal(text, &o))
			test, err := os.ReadFile(filepath.Join(dir, "small_test.go"))
			require.NoError(t, err)
			t.Logf("%+v\n%s", o, test)
			assert.Less(t, o.Lines, 60)

			r, err := replay.Open(filepath.Join(dir, "recording"))
			require.NoError(t, err)
			correct, err := replay.Run(t.Context(), r, replay.Options{Invariants: replay.InvariantNames()})
			require.NoError(t, err)
			assert.Empty(t, correct.Violations, "without the mutant: %s", correct.Explain())
			outside := module(t, test)
			cmd := exec.Command("go", "test", "-mod=mod", "-count=1", "-overlay", mutated, ".")
			cmd.Dir = outside
			failed, err := cmd.CombinedOutput()
			assert.Error(t, err, "it passes with the mutant:\n%s", failed)
			assert.Contains(t, string(failed), "violated invariant "+s.invariant, "with the mutant")
			run(t, outside, "go", "test", "-mod=mod", "-count=1", ".")
			if !t.Failed() {
				out[m.Name] = fmt.Sprintf("| `%s` | %s | `%s` | %s, %v | %d → %d | %v | %d |", m.Name, filepath.ToSlash(filepath.Dir(m.File)), s.invariant,
					size(o.Bytes), o.Length.Round(time.Second), o.Frames, o.Shrunk, o.ShrunkLength.Round(100*time.Millisecond), o.Lines)
			}
		})
	}
	for _, m := range load(t) {
		if row := out[m.Name]; row != "" {
			fmt.Println(row)
		}
	}
}

func size(n int) string { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }

// run runs a program, which must succeed.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", last(string(text), 80))
	return string(text)
}

// module returns a module outside of the repository with a test, which imports the repository.
func module(t *testing.T, test []byte) string {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(root)
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	_, requires, _ := strings.Cut(string(mod), "\n")
	text := "module example.org/outside\n" + requires + fmt.Sprintf("\nrequire github.com/kubeparts/kubeparts v0.0.0\n\nreplace github.com/kubeparts/kubeparts => %s\n", path)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small_test.go"), test, 0o644))
	return dir
}
