// Package deptest tests the imports of a package: their number, and that it imports no
// package that the design does not permit.
package deptest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the prefix of the import paths of this module.
const module = "github.com/kubeparts/kubeparts/"

// never lists the packages that no library package of this module may import, with the
// reason.
var never = map[string]string{
	"k8s.io/client-go":            "may be imported in kube/ only",
	"k8s.io/kubernetes":           "cannot be imported by other modules",
	"github.com/stretchr/testify": "is for tests",
	"testing":                     "is for tests",
}

// A Closure describes the packages that a package may import, directly or indirectly.
type Closure struct {
	// Package below the module: "pleg".
	Package string

	// Max is the maximum number of packages, including itself and the standard library, as
	// `go list -deps` counts them.
	Max int

	// Module lists the packages of this module that it imports, except itself. A listed
	// package that is not imported is a failure too.
	Module []string

	// Allow lists packages that only this package may import despite the general rule.
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
		t.Errorf("%s imports %d packages, the limit is %d", c.Package, len(deps), c.Max)
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
	slices.Sort(imported)
	want := slices.Sorted(slices.Values(c.Module))
	if !slices.Equal(imported, want) {
		t.Errorf("%s imports the packages %v of this module, want %v", c.Package, imported, want)
	}
}
