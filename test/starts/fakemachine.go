//go:build unix

package starts

import (
	"context"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// fakeImage is the image of the pods on a fakeMachine, which has it.
const fakeImage = "registry.test/function:1"

// readLatency is the time of calls that change nothing.
const readLatency = time.Millisecond

// A fakeMachine is a machine in memory, whose calls do not delay each other.
type fakeMachine struct {
	*fakecri.Runtime
	socket  string
	latency time.Duration

	mu    sync.Mutex
	calls int                  // of all methods
	pods  map[types.UID][]call // those of each pod
	owner map[string]types.UID // of sandboxes and containers, by ID
}

// newFakeMachine starts a runtime.
func newFakeMachine(ctx context.Context, t testing.TB, dir string, latency time.Duration) (*fakeMachine, error) {
	m := &fakeMachine{
		socket: "unix://" + filepath.Join(dir, "cri.sock"), latency: latency, pods: map[types.UID][]call{}, owner: map[string]types.UID{},
	}
	var err error
	if m.Runtime, err = fakecri.New(fakecri.Config{Name: "fakecri", Faults: m.delay, WriteLogs: true}); err != nil {
		return nil, err
	}
	if _, err := m.Runtime.PullImage(ctx, &runtimeapi.ImageSpec{Image: fakeImage}, nil, nil); err != nil {
		return nil, err
	}
	listener, err := serve.Listen(ctx, m.socket)
	if err != nil {
		return nil, err
	}
	server, err := serve.New(serve.Config{Listener: listener, Runtime: m, Images: m.Runtime, Streams: m.Runtime})
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Run(serving) }) // the client reports the error of its connection
	t.Cleanup(func() { stop(); wg.Wait() })
	return m, nil
}

// delay counts a call and returns its latency. Calls of one kind take different times.
func (m *fakeMachine) delay(c fake.Call) fake.Fault {
	m.mu.Lock()
	m.calls++
	m.mu.Unlock()
	varied := m.latency + time.Duration(c.Number%10)*m.latency/10
	switch c.Method {
	case "RunPodSandbox":
		return fake.Fault{Delay: 5 * varied}
	case "CreateContainer", "StartContainer", "StopPodSandbox", "RemovePodSandbox":
		return fake.Fault{Delay: varied}
	case "GetContainerEvents", "StopContainer", "ImageStatus", "PullImage": // those of images are for no pod
		return fake.Fault{}
	default:
		return fake.Fault{Delay: readLatency}
	}
}

// record records a call for a pod.
func (m *fakeMachine) record(pod types.UID, method string, begin time.Time) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[pod] = append(m.pods[pod], call{method, begin, now})
}

// own records the pod of a sandbox or container.
func (m *fakeMachine) own(id string, pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owner[id] = pod
}

// podOf returns the pod of a sandbox or container.
func (m *fakeMachine) podOf(id string) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owner[id]
}

func (m *fakeMachine) endpoint() string { return m.socket }

func (m *fakeMachine) container() v1.Container { return v1.Container{Name: "main", Image: fakeImage} }

func (m *fakeMachine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func (m *fakeMachine) callsOf() (map[types.UID][]call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.pods), nil
}

// RunPodSandbox records the call.
func (m *fakeMachine) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	pod := types.UID(config.GetMetadata().GetUid())
	defer m.record(pod, "RunPodSandbox", time.Now())
	id, err := m.Runtime.RunPodSandbox(ctx, config, handler)
	m.own(id, pod)
	return id, err
}

// PodSandboxStatus records the call.
func (m *fakeMachine) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	defer m.record(m.podOf(id), "PodSandboxStatus", time.Now())
	return m.Runtime.PodSandboxStatus(ctx, id, verbose)
}

// CreateContainer records the call.
func (m *fakeMachine) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, of *runtimeapi.PodSandboxConfig) (string, error) {
	pod := m.podOf(sandbox)
	defer m.record(pod, "CreateContainer", time.Now())
	id, err := m.Runtime.CreateContainer(ctx, sandbox, config, of)
	m.own(id, pod)
	return id, err
}

// StartContainer records the call.
func (m *fakeMachine) StartContainer(ctx context.Context, id string) error {
	defer m.record(m.podOf(id), "StartContainer", time.Now())
	return m.Runtime.StartContainer(ctx, id)
}
