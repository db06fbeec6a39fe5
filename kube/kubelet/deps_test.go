package kubelet_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/deptest"
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
	// One for internal/usernamespace, which runtime/process and volume/emptydir import.
	deptest.Closure{Package: "kube/kubelet", Max: 962, AnyModule: true, Allow: []string{"k8s.io/client-go"}}.Check(t)
}
