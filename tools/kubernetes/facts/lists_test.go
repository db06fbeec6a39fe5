package facts

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/eviction"
)

// head is the first line of a list.
func head(t *testing.T, of string) string {
	return fmt.Sprintf("# %s of kubelet %s, by \"go test ./facts -update\" in tools/kubernetes.\n", of, version(t))
}

func TestTheDefaultEvictionThresholds(t *testing.T) {
	text := head(t, "Default eviction thresholds")
	for _, signal := range slices.Sorted(maps.Keys(eviction.DefaultEvictionHard)) {
		text += signal + " " + eviction.DefaultEvictionHard[signal] + "\n"
	}
	compare(t, "eviction/testdata/kubelet/thresholds.txt", text)
}

// The list is not exported, and what is exported depends on the kernel.
func TestTheSafeSysctls(t *testing.T) {
	root := sourceDir(t)
	versions := map[string]string{}
	parseFiles(t, func(f *ast.File) { stringConstants(f, versions) }, filepath.Join(root, "pkg", "util", "kernel"))
	lines := []string{}
	parseFiles(t, func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			list, ok := n.(*ast.ValueSpec)
			if !ok || list.Names[0].Name != "safeSysctls" {
				return true
			}
			for _, element := range list.Values[0].(*ast.CompositeLit).Elts {
				line := ""
				for _, field := range element.(*ast.CompositeLit).Elts {
					switch value := field.(*ast.KeyValueExpr).Value.(type) {
					case *ast.BasicLit:
						name, _ := strconv.Unquote(value.Value)
						line += name
					case *ast.SelectorExpr:
						if versions[value.Sel.Name] == "" {
							t.Errorf("%s is no constant", value.Sel.Name)
						}
						line += " " + versions[value.Sel.Name]
					}
				}
				lines = append(lines, line)
			}
			return false
		})
	}, filepath.Join(root, "pkg", "kubelet", "sysctl"))
	if len(lines) == 0 {
		t.Fatal("no list of safe sysctls found")
	}
	slices.Sort(lines)
	compare(t, "runtime/cri/podconfig/testdata/kubelet-sysctls.txt", head(t, "Safe sysctls, with the first version of the kernel,")+strings.Join(lines, "\n")+"\n")
}

// Most reasons are constants of pkg/kubelet/events, and some are literals of the calls that
// record them.
func TestTheReasonsOfEvents(t *testing.T) {
	root := filepath.Join(sourceDir(t), "pkg")
	reasons, constants := map[string]bool{}, map[string]string{}
	parseFiles(t, func(f *ast.File) { stringConstants(f, constants) }, filepath.Join(root, "kubelet", "events"))
	for _, reason := range constants {
		reasons[reason] = true
	}
	parseFiles(t, func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at, records := map[string]int{"Event": 2, "Eventf": 2, "AnnotatedEventf": 3, "WithRef": -1}[of.Sel.Name]
			if !records || at < 0 || at >= len(call.Args) {
				return true
			}
			if reason, ok := call.Args[at].(*ast.BasicLit); ok && reason.Kind == token.STRING {
				text, _ := strconv.Unquote(reason.Value)
				reasons[text] = true
			}
			return true
		})
	}, filepath.Join(root, "kubelet"), filepath.Join(root, "volume"))
	compare(t, "internal/test/repo/testdata/kubelet-reasons.txt", head(t, "Reasons of events")+strings.Join(slices.Sorted(maps.Keys(reasons)), "\n")+"\n")
}
