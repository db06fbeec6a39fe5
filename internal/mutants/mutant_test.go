package mutants_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/mutants"
	"github.com/kubeparts/kubeparts/sim"
)

// root of the module, as seen from here.
var root = filepath.Join("..", "..")

func load(t *testing.T) []mutants.Mutant {
	t.Helper()
	all, err := mutants.Load(os.DirFS("testdata"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 8)
	return all
}

// overlay writes the mutated file to dir and returns what -overlay takes.
func overlay(t *testing.T, dir string, sources map[string]string) string {
	t.Helper()
	replace := map[string]string{}
	for file, source := range sources {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		require.NoError(t, os.WriteFile(to, []byte(source), 0o644))
		from, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		replace[from] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	at := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(at, text, 0o644))
	return at
}

func source(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// build compiles the packages of these files as they would be.
func build(t *testing.T, sources map[string]string) (string, error) {
	t.Helper()
	args := []string{"build", "-overlay", overlay(t, t.TempDir(), sources)}
	for file := range sources {
		args = append(args, "./"+filepath.ToSlash(filepath.Dir(file)))
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestEachMutantFitsTheCode(t *testing.T) {
	names := map[string]bool{}
	for _, inv := range sim.Invariants() {
		names[inv.Name] = true
	}
	sources := map[string]string{} // of all of them together, where they don't exclude each other
	var alone []map[string]string
	for _, m := range load(t) {
		before := source(t, m.File)
		after, err := m.Apply(before)
		if !assert.NoError(t, err) {
			continue
		}
		alone = append(alone, map[string]string{m.File: after})
		for _, name := range m.Invariants {
			assert.True(t, names[name], "%s: no invariant %s", m.Name, name)
		}
		if sources[m.File] == "" {
			sources[m.File] = before
		}
		both, err := m.Apply(sources[m.File])
		require.NoError(t, err, "two mutants of one place: change one of them")
		sources[m.File] = both
	}
	// One build for all; each is built separately only if that fails.
	if _, err := build(t, sources); err != nil {
		for _, one := range alone {
			out, err := build(t, one)
			assert.NoError(t, err, "%s", out)
		}
		assert.NoError(t, err, "all of them together")
	}
}

func TestParseRejectsIncompleteMutants(t *testing.T) {
	good := "file: a.go\ninvariant: x, y\nwhy: because\n--- find\none\n--- replace\ntwo\n"
	m, err := mutants.Parse(good)
	require.NoError(t, err)
	assert.Equal(t, mutants.Mutant{File: "a.go", In: "sim", Invariants: []string{"x", "y"}, Why: "because", Find: "one", Replace: "two"}, m)
	for cut, want := range map[string]string{
		"file: a.go\n":       "no file",
		"invariant: x, y\n":        "no invariant",
		"why: because\n":     "why",
		"--- find\n":         "--- find",
		"--- replace\ntwo\n": "--- replace",
		"one\n":              "changes nothing",
	} {
		_, err := mutants.Parse(strings.Replace(good, cut, "", 1))
		assert.ErrorContains(t, err, want)
	}
	_, err = mutants.Parse("flaw: x\n" + good)
	assert.ErrorContains(t, err, "flaw")
	_, err = mutants.Parse("in: no/where\n" + good)
	assert.ErrorContains(t, err, "no/where")
	_, err = mutants.Parse("in: agent\n" + good)
	assert.ErrorContains(t, err, "no test")
	_, err = mutants.Parse("test: TestX\n" + good)
	assert.ErrorContains(t, err, "or a test")
	m, err = mutants.Parse(strings.Replace("in: agent\n"+good, "invariant: x, y", "test: TestX", 1))
	require.NoError(t, err)
	assert.Equal(t, []string{"TestX"}, m.Tests)
	m, err = mutants.Parse("in: sim/simcri\n" + good)
	require.NoError(t, err)
	assert.Equal(t, "sim/simcri", m.In)
}

func TestApplyRequiresExactlyOneMatch(t *testing.T) {
	m := mutants.Mutant{Name: "m", File: "a.go", Find: "x", Replace: "y"}
	after, err := m.Apply("axa")
	require.NoError(t, err)
	assert.Equal(t, "aya", after)
	for _, text := range []string{"", "xx"} {
		_, err := m.Apply(text)
		assert.ErrorContains(t, err, "not once")
	}
}
