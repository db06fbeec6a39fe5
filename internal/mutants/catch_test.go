//go:build mutants

package mutants_test

import (
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/mutants"
)

// most is the number of seeds within which the simulation must catch a mutant.
const most = "2000"

// violated matches the failure of TestSeeds of package sim: the seed and the invariants.
var violated = regexp.MustCompile(`seed (\d+) violated (?:invariant )?([a-z, -]+[a-z])`)

// simulate builds the tests of a package that has seeds, with an overlay or
// without, and runs seeds until one violates an invariant.
func simulate(t *testing.T, in, overlay string) (out string, err error) {
	t.Helper()
	suite := filepath.Join(t.TempDir(), "sim.test")
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", suite}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	start := time.Now()
	build := exec.Command("go", append(args, "./"+in)...)
	build.Dir = root
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	built := time.Now()
	run := exec.Command(suite, "-test.run=^TestSeeds$", "-test.timeout=20m", "-seeds="+most, "-test.v")
	if in == "sim" {
		run.Args = append(run.Args, "-shrink=false")
	}
	run.Dir = filepath.Join(root, filepath.FromSlash(in))
	text, err = run.CombinedOutput()
	t.Logf("built in %v, ran for %v", built.Sub(start).Round(100*time.Millisecond), time.Since(built).Round(100*time.Millisecond))
	return string(text), err
}

// Each mutant is caught, and the unchanged code violates no invariant (the CI step
// simulate checks that for sim/simcri).
func TestTheSimulationCatches(t *testing.T) {
	var selected []mutants.Mutant
	for _, m := range load(t) {
		if changed().Selects(path.Dir(m.File), "internal/mutants/testdata/"+m.Name+".txt") {
			selected = append(selected, m)
		}
	}
	if len(selected) == 0 {
		t.Skip("KUBEPARTS_MUTANTS_CHANGED selects no mutant")
	}
	t.Run("nothing", func(t *testing.T) {
		out, err := simulate(t, "sim", "")
		assert.NoError(t, err, "%s", out)
		assert.Contains(t, out, most+" seeds", "it has run")
	})
	for _, m := range selected {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel() // to compile uses less than two processors
			after, err := m.Apply(source(t, m.File))
			require.NoError(t, err)
			mutated := overlay(t, t.TempDir(), map[string]string{m.File: after})
			if len(m.Tests) > 0 {
				assertTestFails(t, m, mutated)
				return
			}
			out, err := simulate(t, m.In, mutated)
			require.Error(t, err, "no seed of %s violates an invariant: %s\n%s", most, m.Why, out)
			found := violated.FindStringSubmatch(out)
			if !assert.NotNil(t, found, "it failed without a violation:\n%s", last(out, 60)) {
				return
			}
			names := strings.Split(found[2], ", ")
			t.Logf("seed %s: %s", found[1], found[2])
			assert.True(t, slices.ContainsFunc(m.Invariants, func(name string) bool { return slices.Contains(names, name) }),
				"none of %v caught it:\n%s", m.Invariants, last(out, 60))
		})
	}
}

// assertTestFails runs the tests of m with its overlay: one must fail.
func assertTestFails(t *testing.T, m mutants.Mutant, overlay string) {
	t.Helper()
	cmd := exec.Command("go", "test", "-count=1", "-timeout=10m", "-overlay", overlay, "-run", "^("+strings.Join(m.Tests, "|")+")$", "./"+m.In)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "none of %v fails: %s\n%s", m.Tests, m.Why, out)
	assert.Regexp(t, `--- FAIL: (`+strings.Join(m.Tests, "|")+`)\b`, string(out))
}

// last returns the last lines of a text.
func last(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
