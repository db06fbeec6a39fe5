package repo_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the root of the core module, as a path and as a file system.
const root = "../../.."

var files = os.DirFS(root)

// needRepository skips t in the core module without the modules below it, as released.
func needRepository(t *testing.T) {
	t.Helper()
	if _, err := fs.Stat(files, "kube"); err != nil {
		t.Skip("this is the core module without the modules below it")
	}
}

// filesWhere returns the paths for which is returns true, in lexical order; files in hidden
// directories are left out.
func filesWhere(t *testing.T, is func(name string) bool) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case !d.IsDir() && is(name):
			names = append(names, name)
		}
		return nil
	}))
	return names
}

// inTestdata reports whether a file is below a directory testdata.
func inTestdata(name string) bool { return strings.Contains("/"+name, "/testdata/") }

// isCode reports whether a file is Go source that is not a test.
func isCode(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !inTestdata(name)
}

// read returns the content of a file.
func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	return content
}
