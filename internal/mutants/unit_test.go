package mutants_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/mutants"
)

// unitTables is the directory of the mutants that unit tests must find, relative to the repository.
const unitTables = "internal/mutants/testdata/unit"

// covered are the packages of which at least three mutants must be found by their own tests.
var covered = []string{
	"allocation", "allocation/admission", "cm/cpu", "cm/device", "cm/memory", "eviction", "imagegc", "kube/auth", "kube/certs", "kube/client",
	"kube/node", "kube/server", "podsource/manifest", "prober", "runtime/cri/credentials", "runtime/cri/images", "shutdown", "volume",
	"volume/csi",
}

func loadUnits(t *testing.T) []mutants.Unit {
	t.Helper()
	all, err := mutants.LoadUnits(os.DirFS(filepath.Join(root, filepath.FromSlash(unitTables))))
	require.NoError(t, err)
	return all
}

func TestEachUnitMutantFitsTheCode(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "kube")); err != nil {
		t.Skip("this is the core module without the modules below it")
	}
	count := map[string]int{}
	tests := map[string]string{} // the tests of a package
	for _, u := range loadUnits(t) {
		count[u.Package]++
		_, err := u.Apply(source(t, u.Path()))
		assert.NoError(t, err)
		if tests[u.Package] == "" {
			files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(u.Package), "*_test.go"))
			require.NoError(t, err)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				tests[u.Package] += string(text)
			}
		}
		for _, name := range u.Tests {
			assert.Regexp(t, regexp.MustCompile(`(?m)^func `+regexp.QuoteMeta(name)+`\(`), tests[u.Package], "%s/%s: no test %s", u.Package, u.Name, name)
		}
	}
	for _, pkg := range covered {
		assert.GreaterOrEqual(t, count[pkg], 3, "mutants of %s", pkg)
	}
}

func TestParseUnitsRejectsIncompleteMutants(t *testing.T) {
	good := "package: a/b\n\n=== one\nfile: x.go\ntest: TestA, TestB\nwhy: because\n--- find\n\tif a {\n--- replace\n\tif b {\n\n=== two\nfile: x.go\nhangs: yes\nwhy: so\n--- find\nc\n--- replace\n"
	units, err := mutants.ParseUnits(good)
	require.NoError(t, err)
	assert.Equal(t, []mutants.Unit{
		{Package: "a/b", Name: "one", File: "x.go", Tests: []string{"TestA", "TestB"}, Why: "because", Find: "\tif a {", Replace: "\tif b {"},
		{Package: "a/b", Name: "two", File: "x.go", Hangs: true, Why: "so", Find: "c"},
	}, units)
	assert.Equal(t, "a/b/x.go", units[0].Path())
	assert.Equal(t, "^(TestA|TestB)$", mutants.Run(units[0], units[0]))
	assert.Equal(t, ".", mutants.Run(units...))
	for cut, want := range map[string]string{
		"package: a/b\n": "package",
		"file: x.go\n":   "no file",
		"why: because\n": "no why",
		"--- find\n":     "--- find",
		"--- replace\n":  "--- replace",
		"=== one\n":      "=== name",
		"\tif a {":       "changes nothing",
	} {
		_, err := mutants.ParseUnits(strings.Replace(good, cut, "", 1))
		assert.ErrorContains(t, err, want, cut)
	}
	for from, to := range map[string]string{
		"=== two": "=== one", "TestA, ": "TestA,, ", "file: x.go": "file: c/x.go", "x.go\ntest": "x_test.go\ntest", "hangs: yes": "hang: yes", "a/b": "a//b",
	} {
		_, err := mutants.ParseUnits(strings.Replace(good, from, to, 1))
		assert.Error(t, err, to)
	}
}

func TestMutantsOfChangedPackagesAreSelected(t *testing.T) {
	all := mutants.ParseChanged(" \n")
	assert.True(t, all.Selects("volume/csi"))
	some := mutants.ParseChanged("volume/csi/stage.go eviction README.md\npodsource/manifest/testdata/static/volumes.yaml internal/mutants/testdata/unit/prober.txt")
	for pkg, want := range map[string]bool{
		"volume/csi": true, "eviction": true, "volume": false, "podsource/manifest": true, "podsource": false, "prober": false, "csi": false,
	} {
		assert.Equal(t, want, some.Selects(pkg), pkg)
	}
	assert.False(t, mutants.ParseChanged("volume/csi").Selects("volume"), "a directory is not a file of the one above")
	assert.True(t, some.Selects("prober", "internal/mutants/testdata/unit/prober.txt"))
	assert.False(t, some.Selects("prober", "internal/mutants/testdata/unit/prober"))
}
