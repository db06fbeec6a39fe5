package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

// A node is every subsystem of a Pipeline at once: it records the calls in order, and
// fails those that are set to fail.
type node struct {
	asked  []string
	fail   map[string]error
	phase  v1.PodPhase
	start  *metav1.Time
	starts map[string]v1.ContainerStateWaiting
	ends   []runtime.Termination
	events []string
	result runtime.SyncResult
	left   *runtime.PodStatus // the status from the runtime after a kill
	kill   runtime.KillRequest
	sync   runtime.SyncRequest
	refuse *runtime.Rejection
}

func (n *node) ask(what string) error {
	n.asked = append(n.asked, what)
	return n.fail[what]
}

func (n *node) Report(_ *v1.Pod, _ *runtime.PodStatus, starts map[string]v1.ContainerStateWaiting, end runtime.Termination) v1.PodStatus {
	_ = n.ask("report")
	n.starts, n.ends = starts, append(n.ends, end)
	phase := n.phase
	if end.Failed {
		phase = v1.PodFailed
	}
	return v1.PodStatus{Phase: phase, StartTime: n.start}
}
func (n *node) Finish(*v1.Pod) { _ = n.ask("finish") }

func (n *node) Retain(context.Context, func(types.UID) bool) error { return n.ask("retain statuses") }
func (n *node) Reconcile(*v1.Pod)                                  { _ = n.ask("reconcile") }

func (n *node) Admit(context.Context, *v1.Pod) *runtime.Rejection {
	_ = n.ask("admit")
	return n.refuse
}

func (n *node) Mount(context.Context, *v1.Pod) (map[string]runtime.Volume, error) {
	return map[string]runtime.Volume{"data": {Path: "/vol/data"}}, n.ask("mount")
}
func (n *node) Unmount(context.Context, *v1.Pod) error { return n.ask("unmount") }

type nodeCgroups struct{ *node }

func (nodeCgroups) Has(*v1.Pod) bool                          { return true }
func (n nodeCgroups) Ensure(context.Context, *v1.Pod) error   { return n.ask("ensure cgroup") }
func (n nodeCgroups) Remove(context.Context, types.UID) error { return n.ask("remove cgroup") }

type nodeProbes struct{ *node }

func (n nodeProbes) Add(*v1.Pod)          { _ = n.ask("probe") }
func (n nodeProbes) StopLiveness(*v1.Pod) { _ = n.ask("stop liveness") }
func (n nodeProbes) Results(*v1.Pod) *runtime.ProbeResults {
	return &runtime.ProbeResults{Liveness: map[string]runtime.ProbeResult{"mem://1": runtime.ProbeFailure}}
}
func (n nodeProbes) Remove(types.UID) { _ = n.ask("stop probes") }

func (n *node) Pods(context.Context) ([]*runtime.Pod, error) { return nil, n.ask("list") }
func (n *node) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	return n.left, n.ask("look")
}
func (n *node) SyncPod(_ context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	n.sync = req
	if err := n.ask("sync"); err != nil {
		return n.result, err
	}
	return n.result, n.result.Err()
}
func (n *node) KillPod(_ context.Context, req runtime.KillRequest) error {
	n.kill = req
	return n.ask("kill")
}
func (n *node) network() error { return n.ask("network") }

// nodeRelister is the Relister of a node.
type nodeRelister struct{ *node }

func (n nodeRelister) RequestRelist(types.UID)    { _ = n.ask("relist") }
func (n nodeRelister) RequestReinspect(types.UID) { _ = n.ask("reinspect") }
func (nodeRelister) Pin(types.UID) (unpin func()) { return func() {} }

// pinning also reports pins.
type pinning struct{ nodeRelister }

func (n pinning) Pin(types.UID) (unpin func()) {
	_ = n.ask("pin")
	return func() { _ = n.ask("unpin") }
}

func TestNewNamesTheMissingField(t *testing.T) {
	_, err := pipeline.New(pipeline.Config{})
	assert.EqualError(t, err, "pipeline: Config.Runtime is nil")
}

func newNode(t *testing.T) (*node, *pipeline.Pipeline) {
	n := &node{fail: map[string]error{}, phase: v1.PodPending, left: &runtime.PodStatus{}}
	p, err := pipeline.New(pipeline.Config{
		Runtime: n, Status: n, Probes: nodeProbes{n}, Network: n.network, Relister: nodeRelister{n},
		Admission: pipeline.Admission{Admitter: n}, Resources: pipeline.Resources{Volumes: n, Cgroups: nodeCgroups{n}},
		Record: func(e runtime.Event) { n.events = append(n.events, e.Type+" "+e.Reason+" "+e.Message) },
	})
	require.NoError(t, err)
	return n, p
}

func firstWork(pod *v1.Pod) podworker.SyncRequest {
	return podworker.SyncRequest{UID: pod.UID, Pod: pod, Status: &runtime.PodStatus{UID: pod.UID}, First: true}
}

func TestSyncGoesThroughTheSubsystemsInOrder(t *testing.T) {
	n, p := newNode(t)
	n.result.Actions = []runtime.Action{{Kind: runtime.StartContainer, Target: "web"}}
	next, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.Zero(t, next)
	assert.Equal(t, []string{"admit", "report", "network", "ensure cgroup", "mount", "probe", "sync", "relist"}, n.asked, "section 3.3, sl-36")
	assert.Equal(t, map[string]runtime.Volume{"data": {Path: "/vol/data"}}, n.sync.Volumes)
	assert.Equal(t, runtime.ProbeFailure, n.sync.Probes.Liveness["mem://1"], "probe results are passed to the runtime")
}

func TestSyncStopsWhereASubsystemFails(t *testing.T) { // sl-31
	boom := errors.New("boom")
	for failing, want := range map[string]struct {
		asked int // number of calls made
		event string
	}{
		"network":       {3, "Warning NetworkNotReady network is not ready: boom"},
		"ensure cgroup": {4, "Warning FailedCreatePodContainer unable to ensure pod container exists: boom"},
		"mount":         {5, "Warning FailedMount Unable to attach or mount volumes: boom"},
		"sync":          {7, ""},
	} {
		t.Run(failing, func(t *testing.T) {
			n, p := newNode(t)
			n.fail[failing] = boom
			_, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
			require.ErrorIs(t, err, boom)
			assert.Len(t, n.asked, want.asked)
			if want.event != "" {
				assert.Equal(t, []string{want.event}, n.events)
			}
			if failing == "network" {
				assert.ErrorIs(t, err, podworker.ErrNetworkNotReady, "sl-28")
			}
		})
	}
	t.Run("host network pods don't wait for the network (sl-4)", func(t *testing.T) {
		n, p := newNode(t)
		n.fail["network"] = boom
		pod := newPod("web", 0)
		pod.Spec.HostNetwork = true
		_, err := p.Sync(t.Context(), firstWork(pod))
		require.NoError(t, err)
	})
	t.Run("nq-12, vol-27: volumes that are late", func(t *testing.T) {
		n, p := newNode(t)
		n.fail["mount"] = fmt.Errorf("boom: %w", context.DeadlineExceeded)
		_, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, []string{"Warning FailedMount Unable to attach or mount volumes: boom: context deadline exceeded"}, n.events)
	})
	t.Run("a canceled call emits no event", func(t *testing.T) {
		n, p := newNode(t)
		n.fail["mount"] = context.Canceled
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Sync(ctx, firstWork(newPod("web", 0)))
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, n.events)
	})
}

func TestARejectedPodFailsAndStartsNothing(t *testing.T) {
	n, p := newNode(t)
	n.refuse = &runtime.Rejection{Reason: "OutOfcpu", Message: "Node didn't have enough resource: cpu"}
	next, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.True(t, next.Terminal)
	assert.Equal(t, []string{"admit", "report"}, n.asked)
	assert.Equal(t, runtime.Termination{Terminal: true, Failed: true, Reason: "OutOfcpu", Message: "Pod was rejected: Node didn't have enough resource: cpu"}, n.ends[0], "sl-18")

	running := firstWork(newPod("web", 0))
	running.Status.Sandboxes = []runtime.SandboxStatus{{State: runtime.SandboxReady}}
	n.asked = nil
	_, err = p.Sync(t.Context(), running)
	require.NoError(t, err)
	assert.NotContains(t, n.asked, "admit", "lq-28: a running pod is not admitted again")
}

func TestAPodAtItsEndIsTerminal(t *testing.T) {
	for _, phase := range []v1.PodPhase{v1.PodSucceeded, v1.PodFailed} {
		n, p := newNode(t)
		n.phase = phase
		next, err := p.Sync(t.Context(), firstWork(newPod("job", 0)))
		require.NoError(t, err)
		assert.True(t, next.Terminal)
		assert.NotContains(t, n.asked, "sync")
	}
}

func TestActiveDeadlineEndsAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, p := newNode(t)
		pod := newPod("job", 0)
		pod.Spec.ActiveDeadlineSeconds = new(int64(60))
		next, err := p.Sync(t.Context(), firstWork(pod))
		require.NoError(t, err)
		assert.Zero(t, next.NextSync, "it has not started")
		n.start = new(metav1.Now())
		next, err = p.Sync(t.Context(), firstWork(pod))
		require.NoError(t, err)
		assert.Equal(t, n.start.Add(time.Minute), next.NextSync)
		time.Sleep(time.Minute)
		next, err = p.Sync(t.Context(), firstWork(pod))
		require.NoError(t, err)
		assert.True(t, next.Terminal)
		assert.Equal(t, "DeadlineExceeded", n.ends[len(n.ends)-1].Reason)
		assert.Equal(t, []string{"Normal DeadlineExceeded Pod was active on the node longer than the specified deadline"}, n.events)
	})
}

func TestAFailedStartIsReportedAtOnce(t *testing.T) {
	n, p := newNode(t)
	until := time.Unix(1000, 0)
	n.result = runtime.SyncResult{RetryAt: until, Actions: []runtime.Action{
		{Kind: runtime.StartContainer, Target: "web", Err: errors.New("x"), Reason: "ErrImagePull", Message: "no such image"},
	}}
	pod := newPod("web", 0)
	next, err := p.Sync(t.Context(), firstWork(pod))
	require.EqualError(t, err, `failed to "StartContainer" for "web" with ErrImagePull: "no such image"`)
	assert.Equal(t, until, next.RetryAt)
	assert.Equal(t, "report", n.asked[len(n.asked)-2], "again, after the sync")
	assert.Equal(t, map[string]v1.ContainerStateWaiting{"web": {Reason: "ErrImagePull", Message: "no such image"}}, n.starts)

	require.NoError(t, p.Retain(t.Context(), func(types.UID) bool { return false }))
	_, _ = p.Sync(t.Context(), firstWork(pod))
	first := len(n.ends) - 2
	assert.GreaterOrEqual(t, first, 0)
	assert.Contains(t, n.asked, "retain statuses")
}

// The status was observed before the start, so a report would contain the exit before it.
func TestASuccessfulStartIsNotReportedBeforeItIsObserved(t *testing.T) {
	n, p := newNode(t)
	reports := func() (count int) {
		_, _ = p.Sync(t.Context(), firstWork(newPod("web", 0)))
		for _, what := range n.asked {
			if what == "report" {
				count++
			}
		}
		n.asked = nil
		return count
	}
	failed := runtime.Action{Kind: runtime.StartContainer, Target: "web", Err: errors.New("x"), Reason: "CrashLoopBackOff", Message: "back-off 10s"}
	n.result.Actions = []runtime.Action{failed}
	assert.Equal(t, 2, reports(), "a new reason is reported after the sync")
	assert.Equal(t, 1, reports(), "the same one is not")
	failed.Message = "back-off 20s"
	n.result.Actions = []runtime.Action{failed}
	assert.Equal(t, 2, reports())
	n.result.Actions = []runtime.Action{{Kind: runtime.StartContainer, Target: "web"}}
	assert.Equal(t, 1, reports(), "the start is reported when it is observed")
	assert.NotEmpty(t, n.starts)
	n.result.Actions = nil
	assert.Equal(t, 1, reports())
	assert.Empty(t, n.starts)

	// The report of another container does not show it either.
	n.result.Actions = []runtime.Action{failed}
	assert.Equal(t, 2, reports())
	other := failed
	other.Target = "log"
	n.result.Actions = []runtime.Action{{Kind: runtime.StartContainer, Target: "web"}, other}
	assert.Equal(t, 2, reports())
	assert.Contains(t, n.starts, "web")
	assert.Contains(t, n.starts, "log")
	assert.Equal(t, 1, reports())
	assert.NotContains(t, n.starts, "web")
}

func TestTerminateStopsProbesThenContainersThenReports(t *testing.T) { // sl-45, lq-21
	n, p := newNode(t)
	w := firstWork(newPod("web", 0))
	w.Status.IPs = []string{"10.0.0.7"}
	w.GracePeriodSeconds = new(int64(7))
	w.Termination = runtime.Termination{Failed: true, Reason: "Evicted"}
	require.NoError(t, p.Terminate(t.Context(), w))
	assert.Equal(t, []string{"report", "stop liveness", "kill", "stop probes", "look", "report", "relist"}, n.asked, "sl-40")
	assert.Equal(t, int64(7), *n.kill.GracePeriodSeconds)
	assert.False(t, n.ends[0].Terminal)
	assert.Equal(t, runtime.Termination{Terminal: true, Failed: true, Reason: "Evicted"}, n.ends[1])
	assert.Equal(t, []string{"10.0.0.7"}, n.left.IPs, "sl-40: the IPs are kept")
}

// nodeClaims are the Claims of a node.
type nodeClaims struct{ *node }

func (n nodeClaims) UnprepareResources(context.Context, types.UID) error { return n.ask("unprepare") }

func TestClaimsAreUnpreparedAfterTheContainersHaveStopped(t *testing.T) { // sl-40, dra-2
	n, _ := newNode(t)
	p, err := pipeline.New(pipeline.Config{
		Runtime: n, Status: n, Resources: pipeline.Resources{Claims: nodeClaims{n}}, Relister: nodeRelister{n},
	})
	require.NoError(t, err)
	w := firstWork(newPod("web", 0))
	require.NoError(t, p.Terminate(t.Context(), w))
	assert.Equal(t, []string{"report", "kill", "look", "unprepare", "report", "relist"}, n.asked)
	assert.True(t, n.ends[1].Terminal)

	n.asked, n.ends, n.fail["unprepare"] = nil, nil, errors.New("boom")
	require.EqualError(t, p.Terminate(t.Context(), w), "pipeline: boom")
	assert.Equal(t, []string{"report", "kill", "look", "unprepare"}, n.asked, "no terminal phase is reported")
	assert.False(t, n.ends[0].Terminal)

	n.asked = nil
	w.Pod = nil // an orphan
	require.EqualError(t, p.Terminate(t.Context(), w), "pipeline: boom")
	assert.Equal(t, []string{"kill", "unprepare"}, n.asked)

	n.asked, n.left.Containers = nil, []runtime.ContainerStatus{{Name: "web", ID: "x://1", State: runtime.ContainerRunning}}
	require.Error(t, p.Terminate(t.Context(), firstWork(newPod("web", 0))))
	assert.NotContains(t, n.asked, "unprepare", "a container runs")
}

// A pod that had terminated before the agent started is only cleaned up.
func TestCleanupReleasesClaims(t *testing.T) {
	n, _ := newNode(t)
	p, err := pipeline.New(pipeline.Config{
		Runtime: n, Status: n, Resources: pipeline.Resources{Claims: nodeClaims{n}}, Relister: nodeRelister{n},
	})
	require.NoError(t, err)
	require.NoError(t, p.Cleanup(t.Context(), firstWork(newPod("web", 0))))
	assert.Equal(t, []string{"report", "unprepare", "finish"}, n.asked)

	n.asked, n.fail["unprepare"] = nil, errors.New("boom")
	require.EqualError(t, p.Cleanup(t.Context(), firstWork(newPod("web", 0))), "pipeline: boom")
	assert.Equal(t, []string{"report", "unprepare"}, n.asked, "the pod is not finished")
}

func TestTerminateFailsWhileAnythingRuns(t *testing.T) {
	n, p := newNode(t)
	n.left.Containers = []runtime.ContainerStatus{{Name: "web", ID: "x://1", State: runtime.ContainerRunning}}
	err := p.Terminate(t.Context(), firstWork(newPod("web", 0)))
	require.ErrorContains(t, err, "container web (x://1) is running after KillPod succeeded", "sl-43")

	n.fail["kill"] = errors.New("boom")
	require.ErrorContains(t, p.Terminate(t.Context(), firstWork(newPod("web", 0))), "kill pod: boom")
	assert.Equal(t, []string{"Warning FailedKillPod error killing pod: boom"}, n.events, "sl-42")
}

func TestAnOrphanIsKilledAndNotReported(t *testing.T) {
	n, p := newNode(t)
	w := podworker.SyncRequest{UID: "lost", Orphan: &runtime.Pod{UID: "lost"}, GracePeriodSeconds: new(int64(1))}
	require.NoError(t, p.Terminate(t.Context(), w))
	assert.Equal(t, []string{"kill", "relist"}, n.asked, "sl-46")
	assert.Nil(t, n.kill.Pod)
}

func TestCleanupReleasesAndFinishesLast(t *testing.T) { // sl-48
	n, p := newNode(t)
	require.NoError(t, p.Cleanup(t.Context(), firstWork(newPod("web", 0))))
	assert.Equal(t, []string{"report", "unmount", "remove cgroup", "finish"}, n.asked, "sl-47")
	for _, failing := range []string{"unmount", "remove cgroup"} {
		n.asked, n.fail = nil, map[string]error{failing: errors.New("busy")}
		require.ErrorContains(t, p.Cleanup(t.Context(), firstWork(newPod("web", 0))), "busy")
		assert.NotContains(t, n.asked, "finish", "sl-49")
	}
}

func TestAPipelineOfARuntimeAloneWorks(t *testing.T) { // sl-44
	n, _ := newNode(t)
	p, err := pipeline.New(pipeline.Config{Runtime: n})
	require.NoError(t, err)
	w := firstWork(newPod("web", 0))
	_, err = p.Sync(t.Context(), w)
	require.NoError(t, err)
	require.NoError(t, p.Terminate(t.Context(), w))
	require.NoError(t, p.Cleanup(t.Context(), w))
	require.NoError(t, p.Retain(t.Context(), func(types.UID) bool { return false }))
	assert.Equal(t, []string{"sync", "kill", "look"}, n.asked)
}

func TestSyncPinsThePodUntilItsRelistIsRequested(t *testing.T) { // pleg-32
	for result, want := range map[string][]string{
		"done":    {"pin", "sync", "relist", "unpin"},
		"nothing": {"pin", "sync", "unpin"},
		"failed":  {"pin", "sync", "unpin"},
	} {
		n := &node{fail: map[string]error{}}
		switch result {
		case "done":
			n.result.Actions = []runtime.Action{{Kind: runtime.StartContainer, Target: "web"}}
		case "failed":
			n.fail["sync"] = errors.New("boom")
		}
		p, err := pipeline.New(pipeline.Config{
			Runtime: n, Relister: pinning{nodeRelister{n}},
		})
		require.NoError(t, err)
		_, err = p.Sync(t.Context(), firstWork(newPod("web", 0)))
		assert.Equal(t, result == "failed", err != nil)
		assert.Equal(t, want, n.asked, result)
	}
}
