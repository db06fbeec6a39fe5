package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Hooks observe: their functions have no results, except the context of a span. Join keeps each of them: it is
//
//	compose.Add(&h.F, o.F)
//
// for each field F.
func TestHooksHaveNoResultsAndAreJoined(t *testing.T) {
	needRepository(t)
	types, joined := map[string][]string{}, map[string][]string{}
	for _, name := range filesWhere(t, func(name string) bool {
		return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !inTestdata(name)
	}) {
		src := read(t, name)
		if !strings.Contains(string(src), "Hooks") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					s, ok := s.(*ast.TypeSpec)
					if !ok || !strings.HasSuffix(s.Name.Name, "Hooks") {
						continue
					}
					if hooks, ok := s.Type.(*ast.StructType); ok {
						types[filepath.Dir(name)+"."+s.Name.Name] = functions(t, name, hooks)
					}
				}
			case *ast.FuncDecl:
				if d.Name.Name == "Join" && d.Recv != nil {
					joined[filepath.Dir(name)+"."+fmt.Sprint(d.Recv.List[0].Type)] = added(d)
				}
			}
		}
	}
	assert.Greater(t, len(types), 25)
	for name, fields := range types {
		assert.Equal(t, fields, joined[name], "%s: functions that Join combines", name)
	}
}

func functions(t *testing.T, name string, hooks *ast.StructType) (fields []string) {
	for _, f := range hooks.Fields.List {
		typ, ok := f.Type.(*ast.FuncType)
		assert.True(t, ok && (typ.Results == nil || f.Names[0].Name == "Trace"), "%s: %v is not a function without results", name, f.Names)
		for _, n := range f.Names {
			fields = append(fields, n.Name)
		}
	}
	return fields
}

// added returns each F of the calls compose.Add(&h.F, o.F) of f.
func added(f *ast.FuncDecl) (fields []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		to, ok := call.Args[0].(*ast.UnaryExpr)
		if !ok {
			return true
		}
		own, _ := to.X.(*ast.SelectorExpr)
		if other, ok := call.Args[1].(*ast.SelectorExpr); ok && own != nil && own.Sel.Name == other.Sel.Name {
			fields = append(fields, own.Sel.Name)
		}
		return true
	})
	return fields
}
