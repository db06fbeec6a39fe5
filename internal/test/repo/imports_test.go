package repo_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the root of the core module.
const root = "../../.."

// importsInternal are the directories that still import internal packages of the core.
// A directory that does not any more is removed from the list.
var importsInternal = []string{"examples/kubelet"}

// A module that imports internal packages of another breaks when the versions of the two
// differ, and its programs do not compile outside this repository.
func TestOtherModulesImportOnlyPublicPackages(t *testing.T) {
	var found []string
	for _, module := range []string{"kube", "examples"} {
		if _, err := os.Stat(filepath.Join(root, module)); err != nil {
			t.Skip("this is the core module without the modules below it")
		}
		for file, imports := range sources(t, filepath.Join(root, module)) {
			if slices.ContainsFunc(imports, func(path string) bool {
				return strings.HasPrefix(path, "github.com/kubeparts/kubeparts/internal/")
			}) {
				found = append(found, filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), filepath.Clean(root)+string(filepath.Separator))))
			}
		}
	}
	slices.Sort(found)
	assert.Equal(t, importsInternal, slices.Compact(found), "kube/ and examples/ import public packages of the core only")
}

// sources returns the import paths of each Go file below dir that is not a test.
func sources(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files[path] = []string{}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			files[path] = append(files[path], name)
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}
