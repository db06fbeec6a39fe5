// Package envtest_test tests a small controller, in team_test.go, with pods that run: with
// an API server in memory and in virtual time, and with a real API server.
package envtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func TestIntegrationTheControllerOnACluster(t *testing.T) {
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	config, err := clientcmd.BuildConfigFromFlags("", control.Kubeconfig)
	require.NoError(t, err)
	nodes := fakenode.Start(t.Context(), t, config, newNodes)
	config.QPS = -1
	api, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	keep(t, api)
	t.Run("tests", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				space := strings.ToLower(name)
				_, err := api.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{})
				require.NoError(t, err)
				test(&world{t, api, nodes, space})
			})
		}
	})
}

// The example needs the programs of a control plane and is skipped without them.
func TestIntegrationTheExampleStartsItsOwnCluster(t *testing.T) {
	lab.Need(t, "kubernetes")
	env, err := lab.EnvtestEnv()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", ".")
	cmd.Dir = "../../examples/envtest"
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "--- PASS: TestAPodRestartsAfterItsContainerIsKilled")
}
