package repo_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apiText has the exported API of each package, one line per declaration, field and method: a
// change of the API is a change of these files, and is reviewed as such.
const apiText = "internal/test/repo/testdata/api"

func TestTheAPIIsTheOneInTheGoldenFiles(t *testing.T) {
	if _, err := fs.Stat(files, "kube"); err != nil {
		t.Skip("this is the core module without the modules below it")
	}
	golden := map[string]string{}
	for dir := range publicPackages(t) {
		if lines := exported(t, dir); len(lines) > 0 {
			golden[apiText+"/"+dir+".txt"] = strings.Join(lines, "\n") + "\n"
		}
	}
	require.Greater(t, len(golden), 60)
	if *update {
		require.NoError(t, os.RemoveAll(filepath.Join(root, apiText)))
		for file, text := range golden {
			file = filepath.Join(root, file)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
		return
	}
	const remedy = "go test ./internal/test/repo -run TestTheAPI -update writes it"
	for file, text := range golden {
		is, err := fs.ReadFile(files, file)
		if assert.NoError(t, err, remedy) {
			if string(is) != text {
				t.Errorf("%s is stale: %s", file, remedy)
			}
		}
	}
	require.NoError(t, fs.WalkDir(files, apiText, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			assert.Contains(t, golden, file, "the package does not exist: %s", remedy)
		}
		return err
	}))
}

// A Config with more fields than a reader keeps in mind has groups that are types of their
// own.
func TestNoConfigHasMoreThanTwelveFields(t *testing.T) {
	configs := 0
	for dir := range publicPackages(t) {
		fields := map[string]int{}
		for _, line := range exported(t, dir) {
			if name, _, ok := strings.Cut(strings.TrimPrefix(line, "type "), " struct, "); ok && strings.HasSuffix(name, "Config") {
				fields[name]++
			}
		}
		for name, n := range fields {
			configs++
			assert.LessOrEqual(t, n, 12, "%s.%s", dir, name)
		}
	}
	assert.Greater(t, configs, 50)
}

// publicPackages yields the directory of each package that others can import.
func publicPackages(t *testing.T) func(func(string) bool) {
	t.Helper()
	found := map[string]bool{}
	for _, name := range filesWhere(t, isCode) {
		top, _, below := strings.Cut(name, "/")
		if below && !slices.Contains([]string{"examples", "test", "tools", "hack", "docs", "api"}, top) && !strings.Contains("/"+name, "/internal/") && !strings.Contains(name, "/examples/") {
			found[path.Dir(name)] = true
		}
	}
	return maps.Keys(found)
}

// exported returns a line for each exported declaration in dir, on whatever platform it is
// built, and for each exported field and method, in order.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	names, err := fs.Glob(files, dir+"/*.go")
	require.NoError(t, err)
	lines := map[string]bool{}
	fset := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
		require.NoError(t, err)
		if file.Name.Name == "main" {
			return nil
		}
		a := api{fset: fset, add: func(format string, args ...any) { lines[fmt.Sprintf(format, args...)] = true }}
		for _, decl := range file.Decls {
			a.decl(decl)
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

// An api adds the lines of a file.
type api struct {
	fset *token.FileSet
	add  func(format string, args ...any)
}

func (a api) decl(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		signature := strings.TrimPrefix(a.text(d.Type), "func")
		switch {
		case !d.Name.IsExported():
		case d.Recv == nil:
			a.add("func %s%s", d.Name, signature)
		case ast.IsExported(strings.TrimLeft(a.text(d.Recv.List[0].Type), "*")):
			a.add("method (%s) %s%s", a.text(d.Recv.List[0].Type), d.Name, signature)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					a.typ(s)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						a.add("%s", strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Tok, name, a.text(s.Type))))
					}
				}
			}
		}
	}
}

func (a api) typ(s *ast.TypeSpec) {
	name := s.Name.Name
	if s.TypeParams != nil {
		var params []string
		for _, f := range s.TypeParams.List {
			for _, n := range f.Names {
				params = append(params, n.Name+" "+a.text(f.Type))
			}
		}
		name += "[" + strings.Join(params, ", ") + "]"
	}
	if s.Assign.IsValid() {
		a.add("type %s = %s", name, a.text(s.Type))
		return
	}
	switch u := s.Type.(type) {
	case *ast.StructType:
		a.add("type %s struct", name)
		for _, f := range u.Fields.List {
			for _, n := range f.Names {
				if n.IsExported() {
					a.add("type %s struct, %s %s", s.Name, n, a.text(f.Type))
				}
			}
			if len(f.Names) == 0 {
				a.add("type %s struct, embeds %s", s.Name, a.text(f.Type))
			}
		}
	case *ast.InterfaceType:
		a.add("type %s interface", name)
		for _, f := range u.Methods.List {
			for _, n := range f.Names {
				a.add("type %s interface, %s%s", s.Name, n, strings.TrimPrefix(a.text(f.Type), "func"))
			}
			if len(f.Names) == 0 {
				a.add("type %s interface, embeds %s", s.Name, a.text(f.Type))
			}
		}
	default:
		a.add("type %s %s", name, a.text(s.Type))
	}
}

// text returns the source of a type on one line, or "".
func (a api) text(node ast.Expr) string {
	if node == nil {
		return ""
	}
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.RawFormat}).Fprint(&b, a.fset, node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
