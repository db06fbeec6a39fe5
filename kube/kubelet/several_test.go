package kubelet_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/agent/claim"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A member is one of several kubelets of a process.
type member struct {
	cfg     kubelet.Config
	runtime *fakecri.Runtime
	kubelet *kubelet.Kubelet
	stop    context.CancelFunc
	stopped chan error
}

func newMember(t *testing.T, api *apitest.Server, name string) *member {
	t.Helper()
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
	require.NoError(t, err)
	return &member{runtime: fake, cfg: kubelet.Config{
		Configuration: &kubeletconfig.KubeletConfiguration{
			Address: "127.0.0.1", Port: -1, HealthzPort: new(int32(-1)), EvictionHard: map[string]string{}, // the disk of the machine may be full
		},
		NodeName: name, RootDir: filepath.Join(t.TempDir(), name), Cluster: kubelet.Cluster{Client: conn},
		Runtime: kubelet.Runtime{Name: "fakecri", Service: fake, Images: fake, Processes: true},
		Logger:  slog.New(slog.DiscardHandler),
	}}
}

func (m *member) start(t *testing.T) {
	t.Helper()
	var err error
	m.kubelet, err = kubelet.Open(t.Context(), m.cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	m.stop, m.stopped = stop, make(chan error, 1)
	go func() { m.stopped <- m.kubelet.Run(ctx) }()
}

// containerd accepts connections before it has loaded its containers, and a kubelet waits.
func TestANodeStartsWhenTheRuntimeListsItsPods(t *testing.T) {
	for name, method := range map[string]string{"of the ledger": "ListPodSandbox", "of pods of other nodes": "ListContainers"} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, new(apitest.Server), "n")
			var failures atomic.Int32
			stop := func() {}
			services, err := fakecri.New(fakecri.Config{Faults: func(c fake.Call) (f fake.Fault) {
				if c.Method != method {
					return f
				}
				n := failures.Add(1)
				if n <= 2 {
					f.Err = status.Error(codes.Unavailable, "server is not initialized yet")
				}
				if n == -997 {
					stop()
				}
				return f
			}})
			require.NoError(t, err)
			m.cfg.Runtime.Service, m.cfg.Runtime.Images = services, services
			k, err := kubelet.Open(t.Context(), m.cfg)
			require.NoError(t, err)
			assert.Greater(t, failures.Load(), int32(2))
			require.NoError(t, k.Close())

			failures.Store(-1000)
			var ctx context.Context
			ctx, stop = context.WithCancel(t.Context())
			defer stop()
			_, err = kubelet.Open(ctx, m.cfg)
			require.ErrorContains(t, err, "server is not initialized yet")
		})
	}
}

// bound returns a pod that is bound to a node.
func bound(name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.PodSpec{NodeName: node, RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "main", Image: "nginx"}}},
	}
}

func TestThreeKubeletsInOneProcess(t *testing.T) {
	before := goruntime.NumGoroutine()
	api := new(apitest.Server)
	members := map[string]*member{}
	for i := range 3 {
		name := fmt.Sprint("n", i)
		members[name] = newMember(t, api, name)
		members[name].start(t)
	}
	running := func(pod string) func() bool {
		return func() bool {
			p := api.Pod("default", pod)
			return p != nil && p.Status.Phase == v1.PodRunning
		}
	}
	for name := range members {
		require.Eventually(t, func() bool { return nodeReady(api, name) }, 90*time.Second, 10*time.Millisecond, name)
		api.Put(bound("web-"+name, name))
	}
	ports := map[int32]bool{}
	for name, m := range members {
		require.Eventually(t, running("web-"+name), 90*time.Second, 10*time.Millisecond, name)
		assert.Len(t, m.runtime.Containers(""), 1, "each runs its own pod only")
		ports[api.Get("nodes", "", name).(*v1.Node).Status.DaemonEndpoints.KubeletEndpoint.Port] = true
	}
	assert.Len(t, ports, 3)
	assert.NotContains(t, ports, int32(0))

	// A second kubelet with the root directory of one of them.
	_, err := kubelet.Open(t.Context(), members["n1"].cfg)
	require.ErrorIs(t, err, claim.ErrInUse)
	require.ErrorContains(t, err, members["n1"].cfg.RootDir)

	members["n0"].stop()
	require.NoError(t, <-members["n0"].stopped)
	assert.Equal(t, "running", strings.ToLower(members["n0"].runtime.Containers("")[0].State.String()), "its pod keeps running")
	for _, name := range []string{"n0", "n1", "n2"} {
		api.Put(bound("late-"+name, name))
	}
	for _, name := range []string{"n1", "n2"} {
		require.Eventually(t, running("late-"+name), 90*time.Second, 10*time.Millisecond, name)
	}
	assert.Equal(t, v1.PodPhase(""), api.Pod("default", "late-n0").Status.Phase, "no node runs it")

	// The next one with its root directory adopts its pods.
	container := members["n0"].runtime.Containers("")[0].ID
	members["n0"].start(t)
	require.Eventually(t, running("late-n0"), 90*time.Second, 10*time.Millisecond)
	assert.Equal(t, container, members["n0"].runtime.Containers("")[0].ID)

	for name, m := range members {
		m.stop()
		require.NoError(t, <-m.stopped, name)
		assert.Len(t, m.runtime.Containers(""), 2, "pods keep running")
	}
	deadline := time.Now().Add(90 * time.Second)
	for goruntime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if goruntime.NumGoroutine() > before {
		stacks := make([]byte, 1<<20)
		t.Errorf("goroutines are left:\n%s", stacks[:goruntime.Stack(stacks, true)])
	}
}
