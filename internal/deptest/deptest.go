// Package deptest pins what a package imports, so that its weight is a tested
// promise and an arrow that the design does not have cannot be added unseen.
package deptest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the path every package of this house begins with.
const module = "github.com/kubeparts/kubeparts/"

// never lists what no library package of this house may pull in, with the
// reason.
var never = map[string]string{
	"k8s.io/client-go":            "lives in kube/, nowhere else",
	"k8s.io/kubernetes":           "cannot be imported by other modules",
	"github.com/stretchr/testify": "is for tests",
	"testing":                     "is for tests",
}

// A Closure is what a package may import, directly and indirectly.
type Closure struct {
	// Package below the module: "pleg".
	Package string

	// Max packages in its closure, itself and the standard library included,
	// as `go list -deps` counts.
	Max int

	// House lists the packages of this module that it may reach, itself left
	// out. One that it does not reach (any more) is a failure too.
	Module []string

	// Allow lists entries of the forbidden list that this package may have.
	Allow []string
}

// Check fails t where the package's imports differ from c.
func (c Closure) Check(t *testing.T) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", module+c.Package).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", module+c.Package, err)
	}
	deps := strings.Fields(string(out))
	t.Logf("%s: %d packages of at most %d", c.Package, len(deps), c.Max)
	if len(deps) > c.Max {
		t.Errorf("%s pulls in %d packages; the limit is %d", c.Package, len(deps), c.Max)
	}
	var house []string
	for _, dep := range deps {
		if name, ok := strings.CutPrefix(dep, module); ok && name != c.Package {
			house = append(house, name)
		}
		for bad, why := range never {
			if (dep == bad || strings.HasPrefix(dep, bad+"/")) && !slices.Contains(c.Allow, bad) {
				t.Errorf("%s pulls in %s, which %s", c.Package, dep, why)
			}
		}
	}
	slices.Sort(house)
	want := slices.Sorted(slices.Values(c.Module))
	if !slices.Equal(house, want) {
		t.Errorf("%s reaches the packages %v of this house; its test says %v", c.Package, house, want)
	}
}
