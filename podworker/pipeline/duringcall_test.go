package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

// A slowKill takes a minute to stop a pod.
type slowKill struct{ *node }

func (n slowKill) KillPod(context.Context, runtime.KillRequest) error {
	<-time.After(time.Minute)
	return nil
}

// reports sends the reported terminations to a channel.
type reports struct {
	pipeline.Reporter
	ends chan runtime.Termination
}

func (r reports) Report(_ *v1.Pod, _ *runtime.PodStatus, _ map[string]v1.ContainerStateWaiting, end runtime.Termination) v1.PodStatus {
	r.ends <- end
	return v1.PodStatus{}
}

// A slowSync takes a minute to sync a pod, unless it is canceled.
type slowSync struct{ *node }

func (n slowSync) SyncPod(ctx context.Context, _ runtime.SyncRequest) (runtime.SyncResult, error) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	return runtime.SyncResult{}, ctx.Err()
}

func TestReadinessIsReportedDuringSyncPod(t *testing.T) { // prober-65
	synctest.Test(t, func(t *testing.T) {
		reported := reports{ends: make(chan runtime.Termination, 10)}
		p, err := pipeline.New(pipeline.Config{Runtime: slowSync{new(node)}, Status: reported})
		require.NoError(t, err)
		w := firstWork(newPod("web", 0))
		done := make(chan error, 1)
		go func() {
			_, err := p.Sync(t.Context(), w)
			done <- err
		}()
		synctest.Wait()
		require.Len(t, reported.ends, 1, "the report of the sync itself")
		p.ProbeChanged("another")
		require.Len(t, reported.ends, 1)
		p.ProbeChanged(w.UID)
		require.Len(t, reported.ends, 2)

		require.NoError(t, <-done)
		p.ProbeChanged(w.UID)
		assert.Len(t, reported.ends, 2, "the next sync reports it")
	})
}

// SyncPod may have replaced a container, so that the status before it does not show what runs.
func TestTheDeadlineDuringSyncPodIsNotReportedWithTheStatusBeforeIt(t *testing.T) { // sl-62, st-77
	synctest.Test(t, func(t *testing.T) {
		reported := reports{ends: make(chan runtime.Termination, 10)}
		p, err := pipeline.New(pipeline.Config{Runtime: slowSync{new(node)}, Status: reported})
		require.NoError(t, err)
		w := firstWork(newPod("web", 0))
		w.Pod.Spec.ActiveDeadlineSeconds, w.Pod.Status.StartTime = new(int64(30)), new(metav1.Now())
		began := time.Now()
		res, err := p.Sync(t.Context(), w)
		require.NoError(t, err)
		assert.Equal(t, 30*time.Second, time.Since(began))
		assert.True(t, res.Terminal)
		assert.Equal(t, "DeadlineExceeded", res.Termination.Reason)
		assert.Len(t, reported.ends, 1, "the report before SyncPod")
	})
}

func TestReadinessIsReportedWhileAPodStops(t *testing.T) { // prober-18, prober-65
	synctest.Test(t, func(t *testing.T) {
		reported := reports{ends: make(chan runtime.Termination, 10)}
		p, err := pipeline.New(pipeline.Config{Runtime: slowKill{&node{left: &runtime.PodStatus{}}}, Status: reported})
		require.NoError(t, err)
		w := firstWork(newPod("web", 0))
		w.Termination = runtime.Termination{Failed: true, Reason: "Evicted"}
		p.ProbeChanged(w.UID)
		require.Empty(t, reported.ends, "it runs: it is synced instead")

		done := make(chan error, 1)
		go func() { done <- p.Terminate(t.Context(), w) }()
		synctest.Wait()
		assert.Equal(t, w.Termination, <-reported.ends)
		p.ProbeChanged("another")
		require.Empty(t, reported.ends)
		p.ProbeChanged(w.UID)
		require.Len(t, reported.ends, 1)
		assert.Equal(t, w.Termination, <-reported.ends)

		require.NoError(t, <-done)
		assert.True(t, (<-reported.ends).Terminal)
		p.ProbeChanged(w.UID)
		assert.Empty(t, reported.ends, "a result from before the stop is not reported after it")
	})
}

// A lastStatus sends the status of the runtime that was reported last to a channel.
type lastStatus struct {
	pipeline.Reporter
	observed chan *runtime.PodStatus
}

func (r lastStatus) Report(_ *v1.Pod, observed *runtime.PodStatus, _ map[string]v1.ContainerStateWaiting, _ runtime.Termination) v1.PodStatus {
	r.observed <- observed
	return v1.PodStatus{}
}

func TestNewSandboxIsReportedDuringSyncPod(t *testing.T) { // sl-64
	sandbox := func(id string, state runtime.SandboxState) *runtime.PodStatus {
		return &runtime.PodStatus{Sandboxes: []runtime.SandboxStatus{{ID: id, State: state}}}
	}
	ready := sandbox("1", runtime.SandboxReady)
	before := sandbox("0", runtime.SandboxNotReady)
	before.Containers = []runtime.ContainerStatus{{ID: "exited"}}
	started := sandbox("1", runtime.SandboxReady)
	started.Containers = []runtime.ContainerStatus{{ID: "started"}, {ID: "exited"}} // its postStart hook may run
	tests := map[string]struct {
		before, during *runtime.PodStatus
		reported       bool
	}{
		"first":             {nil, ready, true},
		"first, other form": {&runtime.PodStatus{}, ready, true},
		"was not ready":     {sandbox("1", runtime.SandboxNotReady), ready, true},
		"replaced":          {sandbox("0", runtime.SandboxReady), ready, true},
		"and started":       {nil, started, true},
		"replaced, started": {before, started, true},
		"was ready":         {ready, ready, false},
		"stopped":           {ready, sandbox("1", runtime.SandboxNotReady), false},
		"removed":           {ready, &runtime.PodStatus{}, false},
		"not inspected":     {nil, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				last := lastStatus{observed: make(chan *runtime.PodStatus, 10)}
				p, err := pipeline.New(pipeline.Config{Runtime: slowSync{new(node)}, Status: last})
				require.NoError(t, err)
				w := firstWork(newPod("web", 0))
				w.Status = tt.before
				p.Observed(w.UID, tt.during)
				require.Empty(t, last.observed, "no call is in progress")
				done := make(chan error, 1)
				go func() {
					_, err := p.Sync(t.Context(), w)
					done <- err
				}()
				synctest.Wait()
				require.Equal(t, tt.before, <-last.observed, "the report of the sync itself")

				p.Observed(w.UID, tt.during)
				p.Observed(w.UID, tt.during)
				want := tt.before
				if tt.reported {
					want = &runtime.PodStatus{Sandboxes: tt.during.Sandboxes}
					if tt.before != nil {
						want.Containers = tt.before.Containers
					}
					require.Equal(t, want, <-last.observed)
				}
				assert.Empty(t, last.observed, "once")
				p.ProbeChanged(w.UID)
				assert.Equal(t, want, <-last.observed, "later reports have the same sandbox")
				require.NoError(t, <-done)
				p.Observed(w.UID, tt.during)
				assert.Empty(t, last.observed, "the next sync reports it")
			})
		})
	}
}

func TestAReplacedContainerIsReportedDuringTheHookOfTheNewOne(t *testing.T) {
	running := runtime.ContainerStatus{ID: "1", Name: "web", State: runtime.ContainerRunning}
	exited, starting, started, other := running, running, running, running
	exited.State, starting.ID, started.ID, other.ID, other.Name = runtime.ContainerExited, "2", "2", "3", "other"
	starting.Starting, other.Starting = true, true
	pod := func(containers ...runtime.ContainerStatus) *runtime.PodStatus {
		return &runtime.PodStatus{Sandboxes: []runtime.SandboxStatus{{ID: "1", State: runtime.SandboxReady}}, Containers: containers}
	}
	replacedSandbox := pod(starting, exited)
	replacedSandbox.Sandboxes[0].ID = "2"
	tests := map[string]struct {
		before, during *runtime.PodStatus
		reported       bool
	}{
		"replaced":                  {pod(running), pod(starting, exited), true},
		"with its sandbox":          {pod(running), replacedSandbox, true},
		"no hook":                   {pod(running), pod(started, exited), false},
		"stopped":                   {pod(running), pod(exited), false},
		"had stopped":               {pod(exited), pod(starting, exited), false},
		"hook was pending":          {pod(starting, exited), pod(starting, exited), false},
		"hook of another":           {pod(running), pod(running, other), false},
		"replaced, hook of another": {pod(running), pod(started, exited, other), true},
		"nothing was reported":      {nil, pod(starting, exited), true}, // as a new sandbox, without containers
		"the first of a sandbox":    {pod(), pod(starting), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				last := lastStatus{observed: make(chan *runtime.PodStatus, 10)}
				p, err := pipeline.New(pipeline.Config{Runtime: slowSync{new(node)}, Status: last})
				require.NoError(t, err)
				w := firstWork(newPod("web", 0))
				w.Status = tt.before
				done := make(chan error, 1)
				go func() {
					_, err := p.Sync(t.Context(), w)
					done <- err
				}()
				synctest.Wait()
				require.Equal(t, tt.before, <-last.observed, "the report of the sync itself")

				p.Observed(w.UID, tt.during)
				p.Observed(w.UID, tt.during)
				if tt.reported {
					want := tt.during.Containers
					if tt.before == nil {
						want = nil
					}
					require.Equal(t, want, (<-last.observed).Containers)
				}
				assert.Empty(t, last.observed, "once")
				require.NoError(t, <-done)
			})
		})
	}
}

func TestAPodIsInspectedAfterAPendingHook(t *testing.T) { // whose end is not in the lists of the runtime
	for starting, want := range map[bool]string{true: "reinspect", false: "sync"} {
		n, p := newNode(t)
		w := firstWork(newPod("web", 0))
		w.Status.Containers = []runtime.ContainerStatus{{ID: "1", Name: "web", State: runtime.ContainerRunning, Starting: starting}}
		_, err := p.Sync(t.Context(), w)
		require.NoError(t, err)
		assert.Equal(t, want, n.asked[len(n.asked)-1])
	}
}
