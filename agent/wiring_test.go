package agent_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pod pipeline is assembled in one place, so that the results of the simulation
// are valid for every agent.
func TestOnlyThisPackageAssemblesThePipeline(t *testing.T) {
	const podworker = "github.com/kubeparts/kubeparts/podworker"
	root := ".."
	var callers []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && file != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		if calls(t, file, podworker, "NewLoop") {
			rel, err := filepath.Rel(root, file)
			callers = append(callers, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	require.NoError(t, err)
	callers = slices.DeleteFunc(callers, func(file string) bool {
		return file == "agent/construct.go" || path.Dir(file) == "podworker" && strings.HasSuffix(file, "_test.go")
	})
	assert.Empty(t, callers, "podworker.NewLoop is called by package agent only: use agent.New")
}

// calls reports whether a file refers to a function of the package pkg.
func calls(t *testing.T, file, pkg, function string) (found bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	name := ""
	for _, spec := range parsed.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil && imported == pkg {
			name = path.Base(pkg)
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "" {
		return false
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == function {
			x, ok := s.X.(*ast.Ident)
			found = found || ok && x.Name == name
		}
		return true
	})
	return found
}
