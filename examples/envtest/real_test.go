package envtest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// The same tests on the API server of ENVTEST_KUBECONFIG: etcd and kube-apiserver suffice, as
// envtest starts them. In a suite with envtest, config is the result of testEnv.Start.
func TestTheControllerOnARealAPIServer(t *testing.T) {
	kubeconfig := os.Getenv("ENVTEST_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("ENVTEST_KUBECONFIG does not name an API server")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
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
