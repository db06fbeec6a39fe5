package envtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// The same tests with etcd and kube-apiserver, as an envtest has them: no controllers
// but ours, no scheduler, and no node but ours. They run beside each other.
func TestIntegrationTheControllerOnARealCluster(t *testing.T) {
	config := newRealWorld(t)
	nodes := fakenode.Start(t.Context(), t, config, newNodes) // where envtest has testEnv.Start, config is its
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

func newRealWorld(t *testing.T) *rest.Config {
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	config, err := clientcmd.BuildConfigFromFlags("", control.Kubeconfig)
	require.NoError(t, err)
	return config
}
