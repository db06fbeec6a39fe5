package provider_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/kubeparts/kubeparts/kube/provider"
)

var (
	_ node.PodLifecycleHandler = (*provider.Provider)(nil)
	_ node.PodNotifier         = (*provider.Provider)(nil)
)

// nodeName is the name of the virtual node.
const nodeName = "virtual"

// control runs virtual-kubelet's controllers of pods and of the node, wired as its package
// nodeutil wires them, until stop is called. stop returns after all their goroutines have
// returned. With resolves, the provider resolves the environment of pods, not virtual-kubelet.
func control(t *testing.T, client kubernetes.Interface, handler node.PodLifecycleHandler, resolves bool) (stop func()) {
	const resync = time.Minute // nodeutil's default
	ctx, cancel := context.WithCancel(t.Context())
	ctx = log.WithLogger(ctx, vkslog.FromSlog(slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))))

	ofNode := informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
	}))
	all := informers.NewSharedInformerFactory(client, resync)
	pods, err := node.NewPodController(node.PodControllerConfig{
		PodClient: client.CoreV1(), PodInformer: ofNode.Core().V1().Pods(), EventRecorder: &record.FakeRecorder{}, Provider: handler,
		ConfigMapInformer: all.Core().V1().ConfigMaps(), SecretInformer: all.Core().V1().Secrets(), ServiceInformer: all.Core().V1().Services(),
		SkipDownwardAPIResolution: resolves,
	})
	require.NoError(t, err)
	nodes, err := node.NewNodeController(node.NewNaiveNodeProvider(), &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Status:     v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}, client.CoreV1().Nodes(), node.WithNodeEnableLeaseV1(client.CoordinationV1().Leases(v1.NamespaceNodeLease), node.DefaultLeaseDuration))
	require.NoError(t, err)

	ofNode.Start(ctx.Done())
	all.Start(ctx.Done())
	go func() { _ = pods.Run(ctx, 4) }() // Err returns its error
	select {
	case <-pods.Ready():
	case <-pods.Done():
		require.NoError(t, pods.Err())
	}
	go func() { _ = nodes.Run(ctx) }()
	select {
	case <-nodes.Ready():
	case <-nodes.Done():
		require.NoError(t, nodes.Err())
	}
	return func() {
		cancel()
		<-pods.Done()
		<-nodes.Done()
		ofNode.Shutdown()
		all.Shutdown()
		require.NoError(t, pods.Err())
	}
}
