package untrusted_test

import (
	"fmt"
	"go/ast"
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

// checked are the packages, with those below them, that read, list or remove what
// pods and other local users can write, or send requests to what they name.
var checked = []string{
	"agent", "runtime/cri", "runtime/process", "volume", "prober", "runtime/podenv", "eviction", "cm/stats", "kube/server", "kube/kubelet",
}

// unchecked are packages below those that run in tests only.
var unchecked = []string{"runtime/cri/fakecri", "volume/volumetest", "volume/csi/csitest"}

// forbidden are functions and types without a bound, by import path and name, with
// what to use instead.
var forbidden = map[string]map[string]string{
	"os": {
		"ReadFile": "untrusted.ReadFile", "ReadDir": "untrusted.ReadDir", "RemoveAll": "untrusted.RemoveTree",
		"Open": "untrusted.Open", "OpenFile": "untrusted.OpenFile", "Create": "untrusted.OpenFile", "WriteFile": "untrusted.OpenFile",
	},
	"path/filepath": {"Walk": "untrusted.ReadDir", "WalkDir": "untrusted.ReadDir"},
	"io/ioutil":     {"ReadFile": "untrusted.ReadFile", "ReadDir": "untrusted.ReadDir", "WriteFile": "untrusted.OpenFile"},
	"net/http": {
		"Get": "podhttp", "Head": "podhttp", "Post": "podhttp", "PostForm": "podhttp",
		"DefaultClient": "podhttp", "DefaultTransport": "podhttp", "Client": "podhttp", "Transport": "podhttp",
	},
}

// A use is one mention of something forbidden: "dir/file.go Function pkg.Name".
type use struct{ where, instead, position string }

// uses returns what a file uses of what is forbidden.
func uses(name string, src any) ([]use, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imports := map[string]string{} // by name in the file
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		as := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			as = i.Name.Name
		}
		if as == "." && forbidden[path] != nil {
			return nil, fmt.Errorf("%s: dot import of %s", name, path)
		}
		imports[as] = path
	}
	var found []use
	for _, decl := range file.Decls {
		in := "var"
		if f, ok := decl.(*ast.FuncDecl); ok {
			in = f.Name.Name
		}
		add := func(at ast.Node, what, instead string) {
			found = append(found, use{filepath.ToSlash(name) + " " + in + " " + what, instead, files.Position(at.Pos()).String()})
		}
		safe := map[*ast.SelectorExpr]bool{}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				if opensSafely(n) {
					safe[s] = true
				}
				if slices.Contains([]string{"Readdirnames", "Readdir", "ReadDir"}, s.Sel.Name) && len(n.Args) == 1 && isMinus(n.Args[0]) {
					add(n, s.Sel.Name+"(-1)", "untrusted.ReadDir")
				}
			case *ast.SelectorExpr:
				id, ok := n.X.(*ast.Ident)
				if !ok || safe[n] {
					break
				}
				path := imports[id.Name]
				if instead := forbidden[path][n.Sel.Name]; instead != "" {
					add(n, path[strings.LastIndex(path, "/")+1:]+"."+n.Sel.Name, instead)
				}
			}
			return true
		})
	}
	return found, nil
}

// opensSafely reports whether a call is an os.OpenFile that neither blocks nor
// follows a link.
func opensSafely(call *ast.CallExpr) bool {
	flags := map[string]bool{}
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				flags[s.Sel.Name] = true
			}
			return true
		})
	}
	return flags["O_NONBLOCK"] && flags["O_NOFOLLOW"]
}

func isMinus(e ast.Expr) bool {
	u, ok := e.(*ast.UnaryExpr)
	return ok && u.Op == token.SUB
}

// The checker finds each of these, and nothing in what is allowed.
func TestTheCheckFindsWhatIsUnbounded(t *testing.T) {
	const head = "package p\nimport (\n\"os\"\n\"syscall\"\nweb \"net/http\"\n\"path/filepath\"\n)\n"
	for src, want := range map[string][]string{
		`func f() { os.ReadFile("x") }`:                                                                                  {"p.go f os.ReadFile"},
		`func f() { os.ReadDir("x"); os.RemoveAll("x"); os.Open("x") }`:                                                  {"p.go f os.ReadDir", "p.go f os.RemoveAll", "p.go f os.Open"},
		`func (t *T) m() { go func() { os.WriteFile("x", nil, 0) }() }`:                                                  {"p.go m os.WriteFile"},
		`var read = os.ReadFile`:                                                                                         {"p.go var os.ReadFile"},
		`func f() { os.OpenFile("x", os.O_RDONLY, 0) }`:                                                                  {"p.go f os.OpenFile"},
		`func f() { os.OpenFile("x", os.O_RDONLY|syscall.O_NONBLOCK, 0) }`:                                               {"p.go f os.OpenFile"},
		`func f() { os.OpenFile("x", os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) }`:                            nil,
		`func f(d *os.File) { d.Readdirnames(-1) }`:                                                                      {"p.go f Readdirnames(-1)"},
		`func f(d *os.File) { d.Readdirnames(10) }`:                                                                      nil,
		`func f() { web.Get("x"); _ = web.Client{}; _ = web.DefaultClient }`:                                             {"p.go f http.Get", "p.go f http.Client", "p.go f http.DefaultClient"},
		`func f() { _ = &web.Transport{} }`:                                                                              {"p.go f http.Transport"},
		`func f() { filepath.WalkDir("x", nil) }`:                                                                        {"p.go f filepath.WalkDir"},
		`func f() { os.Remove("x"); os.Lstat("x"); os.OpenRoot("x"); os.MkdirAll("x", 0); web.NewRequest("", "", nil) }`: nil,
	} {
		found, err := uses("p.go", head+src)
		require.NoError(t, err, src)
		var got []string
		for _, u := range found {
			got = append(got, u.where)
		}
		assert.Equal(t, want, got, src)
	}
	_, err := uses("p.go", "package p\nimport . \"os\"\nfunc f() { ReadFile(\"x\") }")
	assert.Error(t, err)
}

// What pods and other local users can influence is reached through this package and
// podhttp only. Everything else is on the list of exceptions, with the reason.
func TestWhatPodsInfluenceIsReachedWithABound(t *testing.T) {
	const root = "../.."
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		t.Skip("this is not the whole repository")
	}
	used := map[string]bool{}
	for _, dir := range checked {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			switch {
			case d.IsDir() && (d.Name() == "testdata" || slices.Contains(unchecked, rel)):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
				return nil
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found, err := uses(rel, src)
			for _, u := range found {
				used[u.where] = true
				if _, ok := exceptions[u.where]; !ok {
					assert.Fail(t, "unbounded access", "%s\n%q\nuse %s, or add it to the exceptions with the reason why no pod can influence it", u.position, u.where, u.instead)
				}
			}
			return err
		})
		require.NoError(t, err)
	}
	for where, reason := range exceptions {
		assert.True(t, used[where], "%s is on the list of exceptions and not in the code", where)
		assert.Greater(t, len(reason), 20, "%s needs a reason", where)
	}
}
