package runtime_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// opaque has no Unwrap: it hides the optional interfaces.
type opaque struct{ runtime.Runtime }

type wrapper struct{ runtime.Runtime }

func (w *wrapper) Unwrap() runtime.Runtime { return w.Runtime }

type checkingWrapper struct{ wrapper }

func (*checkingWrapper) Check(context.Context) (runtime.Health, error) {
	return runtime.Health{}, runtime.ErrUnavailable
}

func TestAsUnwrapsWrappers(t *testing.T) {
	rt := new(runtimetest.Runtime)
	twice := &wrapper{&wrapper{rt}}

	w, ok := runtime.As[runtime.Watcher](twice)
	assert.True(t, ok)
	assert.Same(t, rt, w)

	_, ok = runtime.As[runtime.Watcher](opaque{rt})
	assert.False(t, ok, "no Unwrap")
	_, ok = runtime.As[runtime.Checkpointer](&wrapper{opaque{rt}})
	assert.False(t, ok)
}

func TestAsPrefersTheOutermost(t *testing.T) {
	outer := &checkingWrapper{wrapper{new(runtimetest.Runtime)}}
	c, ok := runtime.As[runtime.Checker](&wrapper{outer})
	assert.True(t, ok)
	assert.Same(t, outer, c)
}

func TestAsOfNil(t *testing.T) {
	_, ok := runtime.As[runtime.Watcher](nil)
	assert.False(t, ok)
	_, ok = runtime.As[runtime.Watcher](runtime.Runtime(nil))
	assert.False(t, ok)
	_, ok = runtime.As[runtime.Watcher](&wrapper{})
	assert.False(t, ok, "Unwrap returns nil")
}

func TestAsReturnsWhenAWrapperUnwrapsToItself(t *testing.T) {
	w := new(wrapper)
	w.Runtime = w
	_, ok := runtime.As[runtime.Watcher](w)
	assert.False(t, ok)
}

// A type assertion to an optional interface misses those of a wrapped Runtime.
func TestOptionalInterfacesAreFoundByAs(t *testing.T) {
	optional := map[string]bool{}
	fset := token.NewFileSet()
	own, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range own {
		file, err := parser.ParseFile(fset, path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, ok := spec.Type.(*ast.InterfaceType); ok {
					optional[spec.Name.Name] = true
				}
			}
			return true
		})
	}
	require.True(t, optional["Watcher"] && optional["StatsProvider"])

	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata") {
			if d != nil && d.IsDir() && err == nil {
				return filepath.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(src, []byte(".(runtime.")) {
			return err
		}
		file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if a, ok := n.(*ast.TypeAssertExpr); ok {
				if s, ok := a.Type.(*ast.SelectorExpr); ok && optional[s.Sel.Name] {
					if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "runtime" {
						t.Errorf("%s: type assertion to runtime.%s; use runtime.As", fset.Position(a.Pos()), s.Sel.Name)
					}
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
}
