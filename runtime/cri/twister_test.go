package cri_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A twister is a fakeCRI whose responses are altered on their way. Calls have their
// normal effects.
type twister struct {
	*fakeCRI
	sandboxes       func([]*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox
	containers      func([]*runtimeapi.Container) []*runtimeapi.Container
	sandboxStatus   func(*runtimeapi.PodSandboxStatusResponse) *runtimeapi.PodSandboxStatusResponse
	containerStatus func(*runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse
	made            func(id string) string
	execOutput      func() (stdout, stderr []byte, err error)
}

func twist[T any](with func(T) T, answer T, err error) (T, error) {
	if with == nil || err != nil {
		return answer, err
	}
	return with(answer), nil
}

// clones returns copies of the messages, which may be altered.
func clones[M proto.Message](list []M) []M {
	out := make([]M, 0, len(list))
	for _, m := range list {
		out = append(out, proto.CloneOf(m))
	}
	return out
}

func (w *twister) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	list, err := w.fakeCRI.ListPodSandbox(ctx, filter)
	return twist(w.sandboxes, clones(list), err)
}

func (w *twister) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	list, err := w.fakeCRI.ListContainers(ctx, filter)
	return twist(w.containers, clones(list), err)
}

func (w *twister) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	answer, err := w.fakeCRI.PodSandboxStatus(ctx, id, verbose)
	return twist(w.sandboxStatus, proto.CloneOf(answer), err)
}

func (w *twister) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	answer, err := w.fakeCRI.ContainerStatus(ctx, id, verbose)
	return twist(w.containerStatus, proto.CloneOf(answer), err)
}

func (w *twister) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	id, err := w.fakeCRI.RunPodSandbox(ctx, config, handler)
	return twist(w.made, id, err)
}

func (w *twister) CreateContainer(ctx context.Context, id string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	id, err := w.fakeCRI.CreateContainer(ctx, id, config, sandbox)
	return twist(w.made, id, err)
}

func (w *twister) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, []byte, error) {
	if w.execOutput != nil {
		return w.execOutput()
	}
	return w.fakeCRI.ExecSync(ctx, id, cmd, timeout)
}

// foreigners adds to f a sandbox without labels, and a running and an exited
// container without labels, as another program would. The returned function checks
// that they are unchanged.
func foreigners(f *fakeCRI) func(*testing.T) {
	sandbox := &runtimeapi.PodSandboxStatus{
		Id: "foreign-s", State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "foreign", Namespace: "prod", Uid: "foreign-uid"},
	}
	for name, state := range map[string]runtimeapi.ContainerState{
		"foreign-runs": runtimeapi.ContainerState_CONTAINER_RUNNING, "foreign-exited": runtimeapi.ContainerState_CONTAINER_EXITED,
		"foreign-unknown": runtimeapi.ContainerState_CONTAINER_UNKNOWN,
	} {
		f.put(sandbox, &runtimeapi.ContainerStatus{
			Id: name, State: state, Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "img:1"},
		})
	}
	return func(t *testing.T) {
		t.Helper()
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, call := range f.calls {
			assert.NotContains(t, call, "foreign")
		}
	}
}

// over returns the engine over w, and the directory of its files.
func (w *twister) over(t *testing.T) (*cri.Runtime, *events, string) {
	t.Helper()
	dir, seen := t.TempDir(), new(events)
	rt, err := cri.New(cri.Config{
		Name: "fake", Runtime: w, Images: w.fakeCRI, Record: seen.record,
		Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs", ContainerLogs: dir + "/links"},
	})
	require.NoError(t, err)
	return rt, seen, dir
}

// A life has the errors of the calls of one pod lifecycle.
type life struct{ pods, status, sync, kill, collect error }

func (w *twister) life(t *testing.T, rt *cri.Runtime, pod *v1.Pod) life {
	t.Helper()
	var l life
	_, l.pods = rt.Pods(t.Context())
	_, l.status = rt.PodStatus(t.Context(), pod.UID)
	_, l.sync = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	l.kill = rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID})
	l.collect = rt.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(types.UID) bool { return false }})
	return l
}
