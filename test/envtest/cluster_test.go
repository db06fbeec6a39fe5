// Package envtest_test runs the tests of examples/envtest on a real API server.
package envtest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

func TestIntegrationTheExampleOnACluster(t *testing.T) {
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run=^TestTheControllerOnARealAPIServer$", ".")
	cmd.Dir = "../../examples/envtest"
	cmd.Env = append(os.Environ(), "ENVTEST_KUBECONFIG="+control.Kubeconfig)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "--- PASS: TestTheControllerOnARealAPIServer")
}
