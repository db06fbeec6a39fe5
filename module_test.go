package kubeparts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheModuleRequiresNoClient(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	assert.NotContains(t, string(mod), "k8s.io/client-go", "it lives in kube/, nowhere else")
	assert.NotContains(t, string(mod), "k8s.io/kubernetes ")
}

// stability is the last section of a package's documentation.
var stability = regexp.MustCompile(`(?m)^// # Stability\n//\n// (Settled|Growing|Experimental): `)

// What has no Example, and why.
var noExample = map[string]string{
	"cm/cgroups/host": "it needs a Linux with cgroups that may be written",
	"eviction/notify": "it needs a kernel's notification",
	"shutdown/logind": "it needs a system bus",
	"sim/simcri":      "outside of a bubble it would run in real time",
}

func TestEachPackageTellsItsStoryAndHasAnExample(t *testing.T) {
	packages := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "examples" || path == "test" || path == "tools" || d.Name() == "internal" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case !d.IsDir() || path == ".":
			return nil
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		packages++
		doc, err := os.ReadFile(filepath.Join(path, "doc.go"))
		if assert.NoError(t, err, "%s", path) {
			assert.Regexp(t, stability, string(doc), "%s/doc.go ends with how stable the package is: see CONTRIBUTING.md", path)
		}
		hasExample := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			hasExample = hasExample || strings.HasSuffix(file, "_test.go") &&
				strings.Contains(string(text), "\nfunc Example") && strings.Contains(string(text), "// Output:")
		}
		if reason := noExample[filepath.ToSlash(path)]; reason == "" {
			assert.True(t, hasExample, "%s has no Example with Output", path)
		} else {
			assert.False(t, hasExample, "%s has an Example although %s", path, reason)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, packages, 50, "packages of this repository")
}
