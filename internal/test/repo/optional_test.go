package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// assertions are the type assertions and cases to an interface of this repository that are not
// optional interfaces of a part, by file and interface, with the reason.
var assertions = map[string]string{
	"compose/as.go Wrapper":                   "As itself",
	"compose/check.go Wrapper":                "Check follows Unwrap as As does",
	"kube/client/follow.go interface":         "client-go's mark of fake clients",
	"kube/fakenode/fakeclient.go interface":   "client-go's mark of fake clients",
	"kube/server/containerlogs.go interface":  "http.ResponseWriter has a convention of its own",
	"kube/apitest object":                     "API objects are values",
	"kube/apitest/model.go interface":         "API objects are values",
	"volume/csi/csitest/csitest.go interface": "messages are values",
	"kube/metrics/podworker.go interface":     "errors.Join has a convention of its own",
	"sim/run.go interface":                    "a Machine is not wrapped",
	"sim/record/agent.go Cgroups":             "other Cgroups are not recorded",
}

// unchecked are the optional interfaces that As finds in a package that does not call Check for them,
// by package and interface, with the reason.
var unchecked = map[string]string{
	"runtime/containers/containerstest runtime/containers.LogReader": "a step without the interface is skipped, with the reason",
	"kube/kubelet/internal/podwing runtime.Execer":                   "kube/kubelet/internal/machine checks the runtime",
	"kube/provider/virtualkubelet runtime.ImageFSReporter":           "is called while the node runs",
	"kube/provider/virtualkubelet runtime.StatsProvider":             "is called while the node runs",
	"prober runtime.Checker":                                         "agent.New checks the runtime",
	"runtime/cri runtime/cri.LocalStreams":                           "the error of a stream without it names Config.Calls.Streams",
	"runtime/runtimetest runtime.GarbageCollector":                   "a test",
	"runtime/runtimetest runtime.LogRotator":                         "a test",
	"sim runtime.ImageStore":                                         "a test",
	"sim runtime.Watcher":                                            "a test",
	"sim sim.interface":                                              "a test",
	"volume/volumetest volume.Stager":                                "a test",
}

// A type assertion misses the interface of a wrapped part, and so does As if no constructor reports
// the wrapper that hides it.
func TestOptionalInterfacesAreFoundByAsAndChecked(t *testing.T) {
	const module = "github.com/kubeparts/kubeparts"
	fset := token.NewFileSet()
	files := map[string]*ast.File{} // by path
	interfaces := map[string]bool{} // "dir Name"
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			if d != nil && d.IsDir() && err == nil {
				return filepath.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		files[rel] = file
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range gen.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						if _, ok := s.Type.(*ast.InterfaceType); ok {
							interfaces[path.Dir(rel)+" "+s.Name.Name] = true
						}
					}
				}
			}
		}
		return err
	})
	require.NoError(t, err)
	require.True(t, interfaces["runtime Watcher"] && interfaces["volume Stager"])

	used, found, checked := map[string]bool{}, map[string]token.Pos{}, map[string]bool{}
	for rel, file := range files {
		dir := path.Dir(rel)
		imports := map[string]string{} // directories of packages of this repository, by name
		for _, spec := range file.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if p = strings.TrimPrefix(p, module+"/"); spec.Name != nil {
				imports[spec.Name.Name] = p
			} else {
				imports[path.Base(p)] = p
			}
		}
		// resolve returns the directory and the name of an interface; "" if e is none of this repository.
		resolve := func(e ast.Expr) (in, name string) {
			switch e := e.(type) {
			case *ast.InterfaceType:
				return dir, "interface"
			case *ast.Ident:
				if interfaces[dir+" "+e.Name] {
					return dir, e.Name
				}
			case *ast.SelectorExpr:
				if x, ok := e.X.(*ast.Ident); ok && interfaces[imports[x.Name]+" "+e.Sel.Name] {
					return imports[x.Name], e.Sel.Name
				}
			}
			return "", ""
		}
		asserted := func(e ast.Expr) {
			_, name := resolve(e)
			if name == "" {
				return
			}
			for _, key := range []string{rel + " " + name, dir + " " + name} {
				if assertions[key] != "" {
					used[key] = true
					return
				}
			}
			t.Errorf("%s: type assertion to %s: use compose.As, or give a reason in assertions", fset.Position(e.Pos()), name)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				if n.Type != nil {
					asserted(n.Type)
				}
			case *ast.TypeSwitchStmt:
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						asserted(e)
					}
				}
			case *ast.IndexExpr:
				s, ok := n.X.(*ast.SelectorExpr)
				if !ok {
					break
				}
				in, name := resolve(n.Index)
				switch x, _ := s.X.(*ast.Ident); {
				case x == nil || name == "":
				case x.Name == "compose" && s.Sel.Name == "As":
					found[dir+" "+in+"."+name] = n.Pos()
				case x.Name == "reflect" && s.Sel.Name == "TypeFor":
					checked[dir+" "+in+"."+name] = true
				}
			}
			return true
		})
	}
	for key := range assertions {
		assert.True(t, used[key], "assertions: there is no %s", key)
	}
	for key, at := range found {
		if !checked[key] && unchecked[key] == "" {
			t.Errorf("%s: %s is not passed to compose.Check in the package: a wrapper may hide it unnoticed", fset.Position(at), key)
		}
	}
	for key := range unchecked {
		assert.True(t, found[key] != 0 && !checked[key], "unchecked: %s", key)
	}
	assert.GreaterOrEqual(t, len(found), 30)
}
