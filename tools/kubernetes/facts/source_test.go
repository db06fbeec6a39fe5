package facts

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
)

// goList returns what go list -m prints for a module in go.mod.
func goList(t *testing.T, template, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", template, module).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

// version returns the version of Kubernetes, such as 1.37.2.
func version(t *testing.T) string {
	return strings.TrimPrefix(goList(t, "{{.Version}}", "k8s.io/kubernetes"), "v")
}

// sourceDir returns the directory of the source of Kubernetes.
func sourceDir(t *testing.T) string { return goList(t, "{{.Dir}}", "k8s.io/kubernetes") }

func formatSource(t *testing.T, text string) string {
	t.Helper()
	out, err := format.Source([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out)) + "\n"
}

// parseFiles calls do with each Go file below the directories that is not a test.
func parseFiles(t *testing.T, do func(*ast.File), dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				do(file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// stringConstants adds the constants of a file that are strings to found.
func stringConstants(file *ast.File, found map[string]string) {
	for _, d := range file.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, s := range d.Specs {
			s := s.(*ast.ValueSpec)
			for i, value := range s.Values {
				if value, ok := value.(*ast.BasicLit); ok && value.Kind == token.STRING {
					found[s.Names[i].Name], _ = strconv.Unquote(value.Value)
				}
			}
		}
	}
}

// kubeletDirs are the directories of code that runs in a kubelet and reads feature gates.
// What is shared with other programs, such as the validation of the API, is not.
var kubeletDirs = []string{"cmd/kubelet", "pkg/kubelet", "pkg/volume", "pkg/probe", "pkg/credentialprovider", "pkg/securitycontext", "pkg/api/v1", "pkg/util"}

// gatesOfTheKubelet returns the names of the gates that the code of the kubelet reads, sorted.
func gatesOfTheKubelet(t *testing.T, gates map[featuregate.Feature]featuregate.FeatureSpec) []string {
	t.Helper()
	constants, root := map[string]string{}, sourceDir(t)
	for _, module := range []string{"k8s.io/apiserver", "k8s.io/client-go", "k8s.io/component-base"} {
		parseFiles(t, func(f *ast.File) { stringConstants(f, constants) }, featureDirs(goList(t, "{{.Dir}}", module))...)
	}
	parseFiles(t, func(f *ast.File) { stringConstants(f, constants) }, filepath.Join(root, "pkg", "features"))
	used := map[string]bool{}
	var dirs []string
	for _, dir := range kubeletDirs {
		dirs = append(dirs, filepath.Join(root, filepath.FromSlash(dir)))
	}
	parseFiles(t, func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := s.X.(*ast.Ident); ok && strings.HasSuffix(strings.ToLower(of.Name), "features") {
				if _, ok := gates[featuregate.Feature(constants[s.Sel.Name])]; ok {
					used[constants[s.Sel.Name]] = true
				}
			}
			return true
		})
	}, dirs...)
	return slices.Sorted(maps.Keys(used))
}

// featureDirs returns the directories of a module that declare feature gates.
func featureDirs(module string) (dirs []string) {
	for _, dir := range []string{"pkg/features", "features", "logs/api/v1", "metrics/features", "zpages/features"} {
		if dir = filepath.Join(module, filepath.FromSlash(dir)); isDir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
