package cri_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// container returns a container with an image that is not present by default.
func container(name string) v1.Container {
	return v1.Container{Name: name, Image: "img:1", ImagePullPolicy: v1.PullIfNotPresent}
}

func sidecar(name string) v1.Container {
	c := container(name)
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return c
}

func podOf(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u-1"},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
			DNSPolicy: v1.DNSNone, SecurityContext: &v1.PodSecurityContext{}, Containers: containers,
		},
	}
}

// syncs calls SyncPod with a current status, and requires success.
func syncs(t *testing.T, rt *cri.Runtime, pod *v1.Pod) runtime.SyncResult {
	t.Helper()
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.NoError(t, err)
	return res
}

// failing returns a fault that fails the first n calls of op.
func failing(n int, op string, err error) func(string, string) error {
	return func(o, _ string) error {
		if o != op || n == 0 {
			return nil
		}
		n--
		return err
	}
}

var errLost = status.Error(codes.DeadlineExceeded, "context deadline exceeded")

func execHook(script string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", script}}}
}

// newRuntime returns the engine over the services of cfg, with its files in a
// directory of the test.
func newRuntime(t *testing.T, cfg cri.Config) *cri.Runtime {
	t.Helper()
	dir := t.TempDir()
	cfg.Dirs.Root, cfg.Dirs.PodLogs = dir+"/root", dir+"/logs"
	rt, err := cri.New(cfg)
	require.NoError(t, err)
	return rt
}

func is(st *runtime.PodStatus, name string, state runtime.ContainerState) bool {
	c := st.Container(name)
	return c != nil && c.State == state
}

// events records the events passed to Config.Record.
type events struct {
	mu   sync.Mutex
	list []runtime.Event
}

func (e *events) record(ev runtime.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

// take returns the events since the last take, as "Type Reason path: message".
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for _, ev := range e.list {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", ev.Type, ev.Reason, ev.Object.FieldPath, ev.Message))
	}
	e.list = nil
	return lines
}
