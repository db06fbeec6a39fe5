//go:build unix

package starts

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// image is the image of all pods. The runtime has it.
const image = "registry.test/function:1"

// readLatency is the time of calls that change nothing.
const readLatency = time.Millisecond

// A machine is a CRI runtime at a socket. It records the calls for each pod.
type machine struct {
	*fakecri.Runtime
	endpoint string
	latency  time.Duration

	mu    sync.Mutex
	calls int                         // of all methods
	pods  map[types.UID][]call        // those of each pod
	owner map[string]types.UID        // of sandboxes and containers, by ID
	runs  map[types.UID]time.Time     // when the container of a pod has started
	began map[types.UID]chan struct{} // closed then
}

// A call is a CRI call for a pod.
type call struct {
	method     string
	begin, end time.Time
}

// newMachine starts a runtime.
func newMachine(ctx context.Context, t testing.TB, dir string, latency time.Duration) (*machine, error) {
	m := &machine{
		latency: latency, pods: map[types.UID][]call{}, owner: map[string]types.UID{},
		runs: map[types.UID]time.Time{}, began: map[types.UID]chan struct{}{},
	}
	var err error
	if m.Runtime, err = fakecri.New(fakecri.Config{Name: "fakecri", Faults: m.delay, WriteLogs: true}); err != nil {
		return nil, err
	}
	if _, err := m.Runtime.PullImage(ctx, &runtimeapi.ImageSpec{Image: image}, nil, nil); err != nil {
		return nil, err
	}
	m.endpoint = "unix://" + filepath.Join(dir, "cri.sock")
	listener, err := serve.Listen(ctx, m.endpoint)
	if err != nil {
		return nil, err
	}
	server, err := serve.New(serve.Config{Listener: listener, Runtime: m, Images: m.Runtime, Streams: m.Runtime})
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Run(serving) }) // the error of a connection is that of its client
	t.Cleanup(func() { stop(); wg.Wait() })
	return m, nil
}

// delay counts a call and returns its latency. Calls of one kind take different times.
func (m *machine) delay(c fake.Call) fake.Fault {
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
func (m *machine) record(pod types.UID, method string, begin time.Time) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[pod] = append(m.pods[pod], call{method, begin, now})
	if method == "StartContainer" && m.runs[pod].IsZero() {
		m.runs[pod] = now
		close(m.startedLocked(pod))
	}
}

// startedLocked returns a channel that is closed when the container of a pod has started.
func (m *machine) startedLocked(pod types.UID) chan struct{} {
	if m.began[pod] == nil {
		m.began[pod] = make(chan struct{})
	}
	return m.began[pod]
}

// own records the pod of a sandbox or container.
func (m *machine) own(id string, pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owner[id] = pod
}

// podOf returns the pod of a sandbox or container.
func (m *machine) podOf(id string) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owner[id]
}

// callsOf returns the calls for a pod, and when its container has started.
func (m *machine) callsOf(pod types.UID) ([]call, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[pod], m.runs[pod]
}

// count returns the number of all calls.
func (m *machine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// RunPodSandbox records the call.
func (m *machine) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	pod := types.UID(config.GetMetadata().GetUid())
	defer m.record(pod, "RunPodSandbox", time.Now())
	id, err := m.Runtime.RunPodSandbox(ctx, config, handler)
	m.own(id, pod)
	return id, err
}

// PodSandboxStatus records the call.
func (m *machine) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	defer m.record(m.podOf(id), "PodSandboxStatus", time.Now())
	return m.Runtime.PodSandboxStatus(ctx, id, verbose)
}

// CreateContainer records the call.
func (m *machine) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, of *runtimeapi.PodSandboxConfig) (string, error) {
	pod := m.podOf(sandbox)
	defer m.record(pod, "CreateContainer", time.Now())
	id, err := m.Runtime.CreateContainer(ctx, sandbox, config, of)
	m.own(id, pod)
	return id, err
}

// StartContainer records the call.
func (m *machine) StartContainer(ctx context.Context, id string) error {
	defer m.record(m.podOf(id), "StartContainer", time.Now())
	return m.Runtime.StartContainer(ctx, id)
}
