package kubelet_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An internal package of the core module cannot be imported by another version of this
// module.
func TestImports(t *testing.T) {
	const core = "github.com/kubeparts/kubeparts/internal/"
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "./...").Output()
	require.NoError(t, err)
	for pkg := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(pkg, core) {
			t.Errorf("package kubelet imports %s", pkg)
		}
	}
	out, err = exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for pkg := range strings.FieldsSeq(string(out)) {
		switch {
		case pkg == "testing", strings.HasPrefix(pkg, "github.com/stretchr/testify"), strings.HasPrefix(pkg, "k8s.io/kubernetes/"):
			t.Errorf("package kubelet depends on %s", pkg)
		}
	}
}
