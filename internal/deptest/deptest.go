// Package deptest limits the packages that a package imports, so that tests fail when an
// import of another package of the repository, or many packages, are added.
package deptest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the prefix of the import path of every package of the repository.
const module = "github.com/kubeparts/kubeparts/"

// never has the packages that no library package of the repository may import, with the
// reason.
var never = map[string]string{
	"k8s.io/client-go":            "may be imported in kube/ only",
	"k8s.io/kubernetes":           "may be imported in kube/controllers only",
	"github.com/stretchr/testify": "is for tests",
	"testing":                     "is for tests",
}

// A Closure has the packages that a package may import, directly and indirectly.
type Closure struct {
	// Package below the module: "pleg".
	Package string

	// Max is the most packages in its closure, itself and the standard library included,
	// as `go list -deps` counts. docs/packages.md has it.
	Max int

	// Module lists the packages of the repository in its closure, without itself. A
	// package that is not in the closure is a failure as well.
	Module []string

	// AnyModule disables the comparison with Module, for packages that assemble the others.
	AnyModule bool

	// Allow lists the entries of never that this package may import.
	Allow []string
}

// Check fails t if the imports of the package differ from c.
func (c Closure) Check(t *testing.T) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", module+c.Package).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", module+c.Package, err)
	}
	deps := strings.Fields(string(out))
	t.Logf("%s: %d packages of at most %d", c.Package, len(deps), c.Max)
	if len(deps) > c.Max {
		t.Errorf("%s imports %d packages; the limit is %d", c.Package, len(deps), c.Max)
	}
	var imported []string
	for _, dep := range deps {
		if name, ok := strings.CutPrefix(dep, module); ok && name != c.Package {
			imported = append(imported, name)
		}
		for bad, why := range never {
			if (dep == bad || strings.HasPrefix(dep, bad+"/")) && !slices.Contains(c.Allow, bad) {
				t.Errorf("%s imports %s, which %s", c.Package, dep, why)
			}
		}
	}
	if c.AnyModule {
		return
	}
	slices.Sort(imported)
	want := slices.Sorted(slices.Values(c.Module))
	if !slices.Equal(imported, want) {
		t.Errorf("%s imports the packages %v of the repository; its test lists %v", c.Package, imported, want)
	}
}
