//go:build mutants

package mutants_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/mutants"
)

// changed is what KUBEPARTS_MUTANTS_CHANGED selects.
func changed() mutants.Changed { return mutants.ParseChanged(os.Getenv("KUBEPARTS_MUTANTS_CHANGED")) }

// unitTime bounds the tests of a package, with a mutant or without.
const unitTime = 3 * time.Minute

// goTest runs tests of a package, with an overlay or without.
func goTest(pkg, run, overlay string) (out string, err error) {
	args := []string{"test", "-vet=off", "-timeout", unitTime.String(), "-run", run}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// The texts of a run that failed.
var (
	testFailed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\w+)|^panic: |^fatal error: `)
	notRun     = regexp.MustCompile(`(?m)\[(build|setup) failed\]|no tests to run|no test files`)
	timedOut   = regexp.MustCompile(`(?m)^panic: test timed out after`)
)

// found returns an error unless a run has found a mutant.
func found(u mutants.Unit, out string, failed bool) error {
	switch {
	case notRun.MatchString(out):
		return fmt.Errorf("it does not compile, or no test was run")
	case !failed:
		return fmt.Errorf("no test fails: %s", u.Why)
	case timedOut.MatchString(out):
		if !u.Hangs {
			return fmt.Errorf("the tests did not end within %v, and its table has no line \"hangs: yes\"", unitTime)
		}
	case !testFailed.MatchString(out):
		return fmt.Errorf("go test failed, but no test did")
	}
	return nil
}

// Each mutant is found by the tests of its own package, which pass without it.
func TestTheUnitTestsCatch(t *testing.T) {
	byPackage, packages := map[string][]mutants.Unit{}, []string(nil)
	for _, u := range loadUnits(t) {
		if !changed().Selects(u.Package, unitTables+"/"+u.Table()) {
			continue
		}
		if byPackage[u.Package] == nil {
			packages = append(packages, u.Package)
		}
		byPackage[u.Package] = append(byPackage[u.Package], u)
	}
	if len(packages) == 0 {
		t.Skip("KUBEPARTS_MUTANTS_CHANGED selects no mutant")
	}
	var mu sync.Mutex
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	begun, mutantsInAll := time.Now(), 0
	fmt.Fprintln(rows, "package\tmutants\tfound\ttime")
	t.Run("in", func(t *testing.T) {
		for _, pkg := range packages {
			t.Run(pkg, func(t *testing.T) {
				t.Parallel()
				units := byPackage[pkg]
				begun, caught := time.Now(), 0
				out, err := goTest(pkg, mutants.Run(units...), "")
				require.NoError(t, err, "without a mutant:\n%s", last(out, 60))
				require.NotRegexp(t, notRun, out)
				for _, u := range units {
					t.Run(u.Name, func(t *testing.T) {
						after, err := u.Apply(source(t, u.Path()))
						require.NoError(t, err)
						out, err := goTest(pkg, mutants.Run(u), overlay(t, t.TempDir(), map[string]string{u.Path(): after}))
						if err := found(u, out, err != nil); err != nil {
							t.Errorf("%v\n%s", err, last(out, 60))
							return
						}
						caught++
					})
				}
				mu.Lock()
				defer mu.Unlock()
				mutantsInAll += len(units)
				fmt.Fprintf(rows, "%s\t%d\t%d\t%.0f s\n", pkg, len(units), caught, time.Since(begun).Seconds())
			})
		}
	})
	fmt.Fprintf(rows, "%d packages\t%d\t\t%.0f s\n", len(packages), mutantsInAll, time.Since(begun).Seconds())
	require.NoError(t, rows.Flush())
	t.Logf("\n%s", &table)
}

func TestOnlyAFailedTestFindsAMutant(t *testing.T) {
	for _, tt := range []struct {
		out    string
		failed bool
		hangs  bool
		want   string
	}{
		{"--- FAIL: TestX (0.01s)\nFAIL", true, false, ""},
		{"panic: runtime error: index out of range", true, false, ""},
		{"ok  \tp\t0.1s", false, false, "no test fails"},
		{"FAIL\tp [build failed]", true, false, "does not compile"},
		{"ok  \tp\t0.1s [no tests to run]", false, false, "no test was run"},
		{"go: updates to go.mod needed", true, false, "no test did"},
		{"panic: test timed out after 3m0s", true, false, "did not end"},
		{"panic: test timed out after 3m0s", true, true, ""},
	} {
		err := found(mutants.Unit{Hangs: tt.hangs}, tt.out, tt.failed)
		if tt.want == "" {
			assert.NoError(t, err, tt.out)
		} else {
			assert.ErrorContains(t, err, tt.want, tt.out)
		}
	}
}
