package cri_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func TestATraceCoversTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pull = func(context.Context, string) error { time.Sleep(7 * time.Second); return nil }
		f.before = func(op, _ string) error {
			if op == "RunPodSandbox" {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		f.exec = func(context.Context, string, []string) error { time.Sleep(time.Second); return nil }
		var traces []cri.Trace
		var hooks []cri.HookInfo
		rt, _ := f.engine(t, cri.Config{Hooks: cri.Hooks{
			Traced: func(tr cri.Trace) { traces = append(traces, tr) },
			Hooked: func(i cri.HookInfo) { hooks = append(hooks, i) },
		}})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
		pod := podOf(web)
		syncs(t, rt, pod)
		syncs(t, rt, pod)
		require.Len(t, traces, 1, "a sync without actions has no trace")
		tr := traces[0]
		assert.Equal(t, 10*time.Second, tr.End.Sub(tr.Begin))
		took, at := map[string]time.Duration{}, tr.Begin
		for _, s := range tr.Spans {
			assert.Equal(t, at, s.Begin, "%s: nothing between two spans", s.Step)
			took[s.Step] += s.End.Sub(s.Begin)
			at = s.End
		}
		assert.Equal(t, tr.End, at)
		assert.Equal(t, map[string]time.Duration{
			"Plan": 0, "CreatePodSandbox": 2 * time.Second, "InspectSandbox": 0, "EnsureImage": 7 * time.Second, "ConfigContainer": 0,
			"CreateContainer": 0, "StartContainer": 0, "PostStart": time.Second, "AwaitTurn": 0, "Checkpoint": 0,
		}, took)
		require.Len(t, hooks, 1)
		assert.Equal(t, cri.HookInfo{Pod: pod, Container: "web", Kind: "PostStart", Duration: time.Second}, hooks[0])
	})
}

func TestSyncedIsCalledForEverySync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		var reported []cri.SyncInfo
		rt, _ := f.engine(t, cri.Config{Hooks: cri.Hooks{Synced: func(i cri.SyncInfo) { reported = append(reported, i) }}})
		pod := podOf(container("web"))
		syncs(t, rt, pod)
		syncs(t, rt, pod)
		require.Len(t, reported, 2, "also for a sync without actions")
		assert.Equal(t, "create a sandbox, attempt 0\nstart container web: it has not run yet", reported[0].Plan.String())
		assert.Equal(t, pod, reported[0].Pod)
		assert.Len(t, reported[0].Result.Actions, 2)
		assert.True(t, reported[1].Plan.Empty())
		assert.Empty(t, reported[1].Result.Actions)
	})
}

// managers are resource managers that record their calls and fail the one named
// by fail.
type managers struct {
	calls []string
	fail  string
}

func (m *managers) did(call string) error {
	m.calls = append(m.calls, call)
	if m.fail == call {
		return errors.New("no CPU is free")
	}
	return nil
}

func (m *managers) PreparePod(context.Context, *v1.Pod) error { return m.did("prepare") }
func (m *managers) PreCreate(_ context.Context, _ *v1.Pod, c *v1.Container, config *runtimeapi.ContainerConfig) error {
	config.Linux.Resources.CpusetCpus = "2-3"
	return m.did("create " + c.Name)
}
func (m *managers) PreStart(_ context.Context, _ *v1.Pod, c *v1.Container, _ string) error {
	return m.did("start " + c.Name)
}
func (*managers) ExclusiveCPUs(*v1.Pod) []string { return nil }

func (m *managers) PostStop(_ context.Context, id string) error { return m.did("stopped " + id) }

func TestResourceManagersTakePart(t *testing.T) { // rt-71, rt-77, rt-78, rt-132, lq-18
	for _, tc := range []struct{ fail, reason, event string }{
		{"", "", ""},
		{"prepare", "CreatePodSandboxError", "Warning FailedPrepareDynamicResources : Failed to prepare dynamic resources: no CPU is free"},
		{"create web", "PreCreateHookError", "Warning Failed spec.containers{web}: Internal PreCreateContainer hook failed: no CPU is free"},
		{"start web", "PreStartHookError", "Warning Failed spec.containers{web}: Internal PreStartContainer hook failed: no CPU is free"},
	} {
		f := newFake()
		f.has("img:1")
		m := &managers{fail: tc.fail}
		rt, seen := f.engine(t, cri.Config{Providers: cri.Providers{Managers: m}})
		pod := podOf(container("web"))
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		if tc.fail != "" {
			require.Error(t, err, tc.fail)
			assert.Equal(t, tc.reason, res.Actions[len(res.Actions)-1].Reason)
			assert.Contains(t, seen.take(), tc.event)
			assert.Empty(t, f.running())
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, "2-3", f.newest("web").Config.Linux.Resources.CpusetCpus)
		id := f.newest("web").ID
		f.exits("web", 1)
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
		assert.Equal(t, []string{"prepare", "create web", "start web", "stopped fake://" + id}, m.calls)
	}
}

func TestEventsOfOneFailureAreOne(t *testing.T) { // rt-80
	f := newFake()
	f.has("img:1")
	f.before = func(op, _ string) error {
		if op == "StartContainer" {
			return status.Errorf(codes.Unknown, "failed to start container %q: no such file", f.newest("web").ID)
		}
		return nil
	}
	rt, seen := f.engine(t, cri.Config{})
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(container("web"))})
	require.ErrorContains(t, err, `failed to start container \"web\": no such file`)
	assert.Contains(t, seen.take(), `Warning Failed spec.containers{web}: Error: failed to start container "web": no such file`)
}

func TestAnUnknownContainerIDIsNotInEvents(t *testing.T) { // rt-80
	f := newFake()
	f.has("img:1")
	id := strings.Repeat("0123abcd", 8)
	f.before = func(op, _ string) error {
		if op == "CreateContainer" {
			return status.Errorf(codes.Unknown, "mount for %s: sha256:%s and %s", id, id, id[:40])
		}
		return nil
	}
	rt, seen := f.engine(t, cri.Config{})
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(container("web"))})
	require.Error(t, err)
	assert.Contains(t, seen.take(), "Warning Failed spec.containers{web}: Error: mount for web: sha256:"+id+" and "+id[:40], "digests are kept")
}

// The status of an exited container is read from the runtime only once, however
// often its pod is inspected (lq-32).
func TestAnExitedContainerIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"), container("db"))
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
		up(t, f, rt, pod)
		f.exits("db", 3)
		look := func() *runtime.PodStatus {
			st, err := rt.PodStatus(t.Context(), pod.UID)
			require.NoError(t, err)
			return st
		}
		look()
		time.Sleep(time.Minute)
		first := look()
		f.read()
		again := look()
		first.ObservedAt, again.ObservedAt = time.Time{}, time.Time{}
		assert.Equal(t, first, again)
		assert.Equal(t, []string{"PodSandboxStatus", "ContainerStatus"}, f.read()[2:], "only for web")
		require.NoError(t, f.RemoveContainer(t.Context(), f.newest("db").ID))
		assert.Len(t, look().Containers, 1)
	})
}

// A pod of one container costs at most 8 CRI calls to create and 6 to delete.
func TestNumberOfCallsPerPod(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{})
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	did := append(f.did(), f.read()...)
	assert.LessOrEqual(t, len(did), 8, "created with %q", did)
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	f.read()
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, Status: st}))
	did = append(f.did(), f.read()...)
	assert.LessOrEqual(t, len(did), 6, "deleted with %q", did)
}
