package provider_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/status"
)

// The mistakes of nodes that were written by hand over a backend of some functions, each with a test of a Provider
// over such a backend.

// A machineNode is a Provider over a backend in memory, and the statuses that it has reported.
type machineNode struct {
	*provider.Provider
	below *containerstest.Backend

	mu       sync.Mutex
	reported map[types.UID][]v1.PodStatus
}

func startMachines(t *testing.T, behaviors map[string]fake.Behavior) *machineNode {
	dir, below := t.TempDir(), new(containerstest.Backend)
	for image, b := range behaviors {
		below.Behave(image, b)
	}
	rt, err := containers.New(containers.Config{
		Backend: below, Node: "node", Engine: cri.Config{Name: "machines", Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	p, err := provider.New(provider.Config{Runtime: rt})
	require.NoError(t, err)
	n := &machineNode{Provider: p, below: below, reported: map[types.UID][]v1.PodStatus{}}
	p.NotifyPods(t.Context(), func(pod *v1.Pod) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.reported[pod.UID] = append(n.reported[pod.UID], pod.Status)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return n
}

// all returns the statuses of a pod that were reported.
func (n *machineNode) all(uid types.UID) []v1.PodStatus {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reported[uid]
}

func (n *machineNode) last(t *testing.T, uid types.UID) v1.PodStatus {
	all := n.all(uid)
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// StartedAt is now at each poll; lastTransitionTime is renewed at each poll.
func TestMistakeTimesOfThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startMachines(t, map[string]fake.Behavior{"web:1": {StartDelay: 2 * time.Second}})
		begun := time.Now()
		require.NoError(t, n.CreatePod(t.Context(), web("a")))
		time.Sleep(10 * time.Second)
		first, reports := n.last(t, "a"), len(n.all("a"))
		started := first.ContainerStatuses[0].State.Running.StartedAt.Time
		assert.WithinDuration(t, begun.Add(2*time.Second), started, time.Second)

		time.Sleep(10 * time.Minute) // some hundred polls
		assert.Len(t, n.all("a"), reports, "nothing has changed")
		got, err := n.GetPodStatus(t.Context(), "default", "web")
		require.NoError(t, err)
		assert.Equal(t, started, got.ContainerStatuses[0].State.Running.StartedAt.Time)
		assert.Equal(t, first.Conditions, got.Conditions)
		assert.Equal(t, first.StartTime, got.StartTime)
	})
}

// One container that exits fails the pod, although its restart policy is Always.
func TestMistakeAnExitFailsThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startMachines(t, map[string]fake.Behavior{"web:1": {Exit: &fake.Exit{After: 3 * time.Second, Code: 7}}})
		require.NoError(t, n.CreatePod(t.Context(), web("a")))
		time.Sleep(time.Minute)
		for _, s := range n.all("a") {
			assert.NotEqual(t, v1.PodFailed, s.Phase)
		}
		last := n.last(t, "a")
		assert.Equal(t, v1.PodRunning, last.Phase)
		assert.GreaterOrEqual(t, last.ContainerStatuses[0].RestartCount, int32(2))
		assert.Equal(t, int32(7), last.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)
	})
}

// DeletePod reports Succeeded, whatever happened.
func TestMistakeADeletedPodHasSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startMachines(t, map[string]fake.Behavior{"web:1": {IgnoreTERM: true}})
		require.NoError(t, n.CreatePod(t.Context(), web("a")))
		time.Sleep(5 * time.Second)
		require.NoError(t, n.DeletePod(t.Context(), deleted(web("a"))))
		time.Sleep(20 * time.Second)
		assert.Nil(t, n.last(t, "a").ContainerStatuses[0].State.Terminated, "in the grace period")
		time.Sleep(20 * time.Second)
		last := n.last(t, "a")
		assert.Equal(t, int32(137), last.ContainerStatuses[0].State.Terminated.ExitCode)
		assert.Equal(t, v1.PodFailed, last.Phase)
		assert.Empty(t, n.below.Instances())
	})
}

// Pods are identified by name: the new pod has the state of the old one, or the old machine runs on.
func TestMistakePodsByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startMachines(t, map[string]fake.Behavior{"web:1": {StopDelay: 10 * time.Second}})
		require.NoError(t, n.CreatePod(t.Context(), web("a")))
		time.Sleep(5 * time.Second)
		require.NoError(t, n.DeletePod(t.Context(), deleted(web("a"))))
		require.NoError(t, n.CreatePod(t.Context(), web("b")))
		time.Sleep(time.Minute)
		last := n.last(t, "b")
		assert.True(t, status.IsReady(&last))
		assert.Zero(t, last.ContainerStatuses[0].RestartCount)
		require.Len(t, n.below.Instances(), 1)
		assert.Equal(t, types.UID("b"), n.below.Instances()[0].Pod.UID)
	})
}

// Probes run every 10 s, whatever periodSeconds is.
func TestMistakeProbesEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		n := startMachines(t, map[string]fake.Behavior{"web:1": {Exec: func(context.Context, []string, runtime.Streams) (int32, error) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
			return 0, nil
		}}})
		pod := web("a")
		pod.Spec.Containers[0].LivenessProbe = &v1.Probe{
			ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}},
			PeriodSeconds: 3, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
		}
		require.NoError(t, n.CreatePod(t.Context(), pod))
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Greater(t, len(at), 15)
		for i := 3; i < len(at); i++ {
			assert.InDelta(t, 3*time.Second, at[i].Sub(at[i-1]), float64(time.Second/2), "with jitter")
		}
	})
}

// Port 10250 serves logs and exec to everyone.
func TestMistakeAServerWithoutAuthentication(t *testing.T) {
	_, err := server.New(server.Config{NodeName: "node", Pods: noPods{}})
	require.ErrorContains(t, err, "Authenticator")

	s, err := server.New(server.Config{
		NodeName: "node", Pods: noPods{}, Authenticator: auth.Chain{}, Authorizer: auth.AlwaysAllow{},
		Debugging: server.Debugging{Handlers: true},
	})
	require.NoError(t, err)
	for _, path := range []string{"/pods", "/containerLogs/default/web/app", "/exec/default/web/app?command=sh&output=1", "/run/default/web/app?cmd=sh"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, http.StatusUnauthorized, w.Code, path)
	}
}

// noPods is a server.Pods without pods.
type noPods struct{}

func (noPods) Pods() []*v1.Pod                    { return nil }
func (noPods) Pod(string, string) (*v1.Pod, bool) { return nil, false }
