package repo_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A module that imports internal packages of another breaks when the versions of the two
// differ, and its programs do not compile outside this repository.
func TestOtherModulesImportOnlyPublicPackages(t *testing.T) {
	for _, module := range []string{"kube", "examples"} {
		dir := filepath.Join(root, module)
		if _, err := os.Stat(dir); err != nil {
			t.Skip("this is the core module without the modules below it")
		}
		for file, imports := range sources(t, dir) {
			for _, path := range imports {
				assert.False(t, strings.HasPrefix(path, "github.com/kubeparts/kubeparts/internal/"), "%s imports %s", file, path)
			}
		}
	}
}

// sources returns the import paths of each Go file below dir that is not a test.
func sources(t *testing.T, dir string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		found[path] = []string{}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found[path] = append(found[path], name)
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}
