package repo_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheModuleRequiresNoClient(t *testing.T) {
	mod, err := fs.ReadFile(files, "go.mod")
	require.NoError(t, err)
	assert.NotContains(t, string(mod), "k8s.io/client-go", "only the module kube may require it")
	assert.NotContains(t, string(mod), "k8s.io/kubernetes ")
}

// stability is the last section of a package's documentation.
var stability = regexp.MustCompile(`(?m)^// # Stability\n//\n// (Settled|Growing|Experimental): `)

// noExample has the packages without an Example, with the reason.
var noExample = map[string]string{
	"cm/cgroups/host":              "it needs a Linux with cgroups that may be written",
	"kube/controllers/testcluster": "it is a program",
	"shutdown/logind":              "it needs a system bus",
	"sim/simcri":                   "outside of a bubble it would run in real time",
}

func TestEachPackageHasDocumentationAndAnExample(t *testing.T) {
	packages := 0
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "examples" || path == "test" || path == "tools" || path == "docs" || d.Name() == "internal" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case !d.IsDir() || path == ".":
			return nil
		}
		sources, err := fs.Glob(files, path+"/*.go")
		if err != nil || len(sources) == 0 {
			return err
		}
		packages++
		doc, err := fs.ReadFile(files, path+"/doc.go")
		if assert.NoError(t, err, "%s", path) {
			assert.Regexp(t, stability, string(doc), "%s/doc.go ends with how stable the package is: see CONTRIBUTING.md", path)
		}
		hasExample := false
		for _, file := range sources {
			text, err := fs.ReadFile(files, file)
			if err != nil {
				return err
			}
			hasExample = hasExample || strings.HasSuffix(file, "_test.go") &&
				strings.Contains(string(text), "\nfunc Example") && strings.Contains(string(text), "// Output:")
		}
		if reason := noExample[path]; reason == "" {
			assert.True(t, hasExample, "%s has no Example with Output", path)
		} else {
			assert.False(t, hasExample, "%s has an Example although %s", path, reason)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, packages, 50, "packages of this repository")
}
