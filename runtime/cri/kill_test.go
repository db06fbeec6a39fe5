package cri_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// up syncs the pod until all its containers run; init containers exit successfully.
func up(t *testing.T, f *fakeCRI, rt *cri.Runtime, pod *v1.Pod) {
	t.Helper()
	f.has("img:1")
	for range len(pod.Spec.InitContainers) + 1 {
		syncs(t, rt, pod)
		for _, c := range pod.Spec.InitContainers {
			if c.RestartPolicy == nil && slices.Contains(f.running(), c.Name) {
				f.exits(c.Name, 0)
			}
		}
	}
}

func TestSidecarsAreStoppedAfterTheOthersAndInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, seen := f.engine(t, cri.Config{})
		pod := podOf(container("web"), container("log"))
		pod.Spec.InitContainers = []v1.Container{sidecar("net"), container("setup"), sidecar("proxy")}
		up(t, f, rt, pod)
		for name, after := range map[string]time.Duration{"web": 5, "log": 1, "proxy": 3, "net": 1} {
			f.dies(name, after*time.Second)
		}
		seen.take()
		begun := time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		for name, want := range map[string]struct {
			after time.Duration
			grace int64
		}{"web": {5, 30}, "log": {1, 30}, "proxy": {8, 25}, "net": {9, 22}} { // rt-116, rt-118
			assert.Equal(t, want.after*time.Second, f.newest(name).Ended.Sub(begun), name)
			assert.Equal(t, []int64{want.grace}, f.stops(name), name)
		}
		assert.ElementsMatch(t, []string{ // rt-111
			"Normal Killing spec.containers{web}: Stopping container web",
			"Normal Killing spec.containers{log}: Stopping container log",
			"Normal Killing spec.initContainers{proxy}: Stopping container proxy",
			"Normal Killing spec.initContainers{net}: Stopping container net",
		}, seen.take())
	})
}

// The steps of stopping a container have one deadline: hook, turn and TERM together
// take at most the grace period plus the minimum time after TERM.
func TestTheGracePeriodIsSpentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 12}}}
		pod := podOf(web)
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
		up(t, f, rt, pod)
		f.dies("web", time.Hour)
		f.dies("proxy", time.Hour)
		begun := time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		assert.Equal(t, []int64{18}, f.stops("web")) // rt-105
		assert.Equal(t, 30*time.Second, f.newest("web").Ended.Sub(begun))
		assert.Equal(t, []int64{2}, f.stops("proxy"), "its grace period ended while it waited (rt-118)")
		assert.Equal(t, 32*time.Second, time.Since(begun))
	})
}

func TestGracePeriods(t *testing.T) { // prober-71, prober-72
	for _, tc := range []struct {
		name                     string
		deletion, spec, override *int64
		want                     int64
		hook                     bool // whether preStop runs
	}{
		{"no grace period set rt-108", nil, nil, nil, 2, true},
		{"spec rt-108", nil, new(int64(7)), nil, 7, true},
		{"deletion beats spec rt-109", new(int64(5)), new(int64(7)), nil, 5, true},
		{"override beats both rt-110", new(int64(5)), new(int64(7)), new(int64(3)), 3, true},
		{"one rt-113 lq-34", nil, nil, new(int64(1)), 1, true},
		{"none: no hook rt-105 lq-34", nil, new(int64(7)), new(int64(0)), 0, false},
		{"negative", nil, new(int64(-7)), nil, 0, false},
		{"without end", nil, new(int64(math.MaxInt64)), nil, math.MaxInt32, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				rt, _ := f.engine(t, cri.Config{})
				web := container("web")
				web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"bye"}}}}
				pod := podOf(web)
				pod.Spec.TerminationGracePeriodSeconds = tc.spec
				up(t, f, rt, pod)
				f.did()
				pod.DeletionGracePeriodSeconds = tc.deletion
				require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: tc.override}))
				assert.Equal(t, []int64{tc.want}, f.stops("web"))
				want := []string{"ExecSync web", "StopContainer web", "StopPodSandbox web/0"}
				if !tc.hook {
					want = want[1:]
				}
				assert.Equal(t, want, f.did())
			})
		})
	}
}

// A pod without a cached spec is stopped with the grace period and hook in its
// annotations (rt-107, lq-33).
func TestAnUnknownPodIsStoppedByItsAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, seen := f.engine(t, cri.Config{})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"bye", "$(A)"}}}}
		pod := podOf(web)
		pod.Spec.TerminationGracePeriodSeconds = new(int64(9))
		up(t, f, rt, pod)
		seen.take()
		var ran []string
		f.exec = func(_ context.Context, _ string, cmd []string) error { ran = cmd; return nil }
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID}))
		assert.Equal(t, []string{"bye", "$(A)"}, ran)
		assert.Equal(t, []int64{9}, f.stops("web"))
		assert.Equal(t, []string{"Normal Killing spec.containers{web}: Stopping container web"}, seen.take())
	})
}

// The preStop hook of a container that was removed from the spec runs (rt-107).
func TestAContainerThatTheSpecHasNoMoreIsStoppedByItsAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{})
		old := container("old")
		old.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"bye"}}}}
		pod := podOf(container("web"), old)
		up(t, f, rt, pod)
		var ran []string
		f.exec = func(_ context.Context, name string, cmd []string) error {
			ran = append(ran, name+" "+cmd[0])
			return nil
		}
		pod = pod.DeepCopy()
		pod.Spec.Containers = pod.Spec.Containers[:1]
		pod.Spec.TerminationGracePeriodSeconds = new(int64(9))
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		assert.Equal(t, []string{"old bye"}, ran)
		assert.Equal(t, []int64{9}, f.stops("old"), "the current grace period of the pod")
		assert.Empty(t, f.running())
	})
}

func TestAShorterGraceCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		pod.Spec.TerminationGracePeriodSeconds = new(int64(300))
		up(t, f, rt, pod)
		f.dies("web", time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		require.ErrorIs(t, rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod}), context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(2))}))
		require.Equal(t, 12*time.Second, time.Since(begun))
		require.Equal(t, []int64{300, 2}, f.stops("web"))
	})
}

func TestAHookThatHangsIsCutOffWithItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, seen := f.engine(t, cri.Config{})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hang"}}}}
		pod := podOf(web)
		up(t, f, rt, pod)
		seen.take()
		hooks := make(chan context.Context, 1)
		f.exec = func(ctx context.Context, _ string, _ []string) error { hooks <- ctx; <-ctx.Done(); return ctx.Err() }
		f.before = func(method, _ string) error {
			if method == "StopContainer" {
				hook := <-hooks
				assert.NoError(t, hook.Err(), "the hook continues while the container is stopped")
				hooks <- hook
			}
			return nil
		}
		begun := time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		require.Equal(t, 30*time.Second, time.Since(begun))
		require.Equal(t, []int64{2}, f.stops("web"))
		require.Error(t, (<-hooks).Err(), "the hook ends with the container")
		f.before = nil
		require.Len(t, seen.take(), 1, "a timeout has no event (rt-105)")

		syncs(t, rt, pod)
		seen.take()
		f.exec = func(context.Context, string, []string) error { return errors.New("no such command") }
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		require.Contains(t, seen.take(), "Warning FailedPreStopHook spec.containers{web}: PreStopHook failed")
	})
}

func TestAContainerWhosePostStartFailsIsStopped(t *testing.T) {
	f := newFake()
	f.has("img:1")
	f.exec = func(context.Context, string, []string) error { return errors.New("exit 1") }
	rt, seen := f.engine(t, cri.Config{})
	web := container("web")
	web.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(web)})
	require.Error(t, err)
	assert.Equal(t, "PostStartHookError", res.Actions[1].Reason)
	assert.Empty(t, f.running())
	assert.Equal(t, []int64{30}, f.stops("web"), "the pod's grace period")
	assert.Equal(t, []string{ // rt-103
		"Warning FailedPostStartHook spec.containers{web}: PostStartHook failed",
		"Normal Killing spec.containers{web}: FailedPostStartHook",
	}, seen.take()[3:])
}

func TestAContainerThatCannotBeStoppedDoesNotKeepTheSandbox(t *testing.T) {
	f := newFake()
	rt, _ := f.engine(t, cri.Config{})
	pod := podOf(container("web"))
	up(t, f, rt, pod)
	f.before = failing(9, "StopContainer", errors.New("shim is deaf"))
	require.ErrorContains(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}), "shim is deaf")
	assert.Empty(t, f.running(), "stopping the sandbox killed it (rt-122)")
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
}

// A stop that the runtime reports as successful is verified (sl-43).
func TestKillPodVerifiesThatContainersStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		pod := podOf(container("web"))
		rt, err := cri.New(cri.Config{Name: "fake", Runtime: falseStops{f}, Images: f, Dirs: cri.Dirs{Root: t.TempDir(), PodLogs: t.TempDir()}})
		require.NoError(t, err)
		up(t, f, rt, pod)
		err = rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod})
		require.ErrorContains(t, err, "detected running containers after a successful KillPod, CRI violation: ")
	})
}

// A runtime may report a stop as successful shortly before its lists show it, as
// containerd 2 does with sandboxes. That is not a violation.
func TestKillPodWaitsUntilTheStopIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{Runtime: late{f}})
		pod := podOf(container("web"))
		up(t, f, rt, pod)
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		require.Len(t, st.Sandboxes, 1)
		assert.Equal(t, runtime.SandboxNotReady, st.Sandboxes[0].State, "KillPod returns after the runtime lists it as stopped")
	})
}

// The same when a sandbox is replaced: if two sandboxes appeared ready, the next sync
// would stop the new one with its containers.
func TestAnOldSandboxIsListedAsNotReadyBeforeTheNextIsCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{Runtime: late{f}})
		pod := podOf(container("web"))
		up(t, f, rt, pod)
		pod = pod.DeepCopy()
		pod.Spec.HostNetwork = true
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		require.Len(t, st.Sandboxes, 2)
		assert.Equal(t, runtime.SandboxReady, st.Sandboxes[0].State)
		assert.Equal(t, runtime.SandboxNotReady, st.Sandboxes[1].State)
		again, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		assert.Empty(t, again.Actions, "the new sandbox is kept")
	})
}

// late returns from StopPodSandbox a second before it takes effect.
type late struct{ *fakeCRI }

func (l late) StopPodSandbox(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(time.Second, func() { _ = l.fakeCRI.StopPodSandbox(ctx, id) })
	return nil
}

// A falseStops reports stops as successful, but stops nothing.
type falseStops struct{ *fakeCRI }

func (falseStops) StopContainer(context.Context, string, int64) error { return nil }
func (falseStops) StopPodSandbox(context.Context, string) error       { return nil }

// If two copies of one container run, as an agent may find them (lq-12), the stop waits
// for both.
func TestTwoCopiesOfAContainerAreBothStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
		up(t, f, rt, pod)
		f.dies("web", 4*time.Second)
		web := f.newest("web")
		f.put(&runtimeapi.PodSandboxStatus{Id: web.SandboxID}, &runtimeapi.ContainerStatus{
			Id: "twin", Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: 1}, State: runtimeapi.ContainerState_CONTAINER_RUNNING,
			CreatedAt: web.Created.UnixNano(), StartedAt: web.Started.UnixNano(), Image: web.Config.Image, ImageRef: "img:1", Labels: web.Config.Labels,
		})
		f.dies("web", 4*time.Second)
		require.Equal(t, []string{"proxy", "web", "web"}, f.running())
		begun := time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		require.Equal(t, 4*time.Second, f.newest("proxy").Ended.Sub(begun))
		require.Empty(t, f.running())
	})
}

func TestAStoppedPodIsForgotten(t *testing.T) {
	f := newFake()
	rt, _ := f.engine(t, cri.Config{})
	for _, uid := range []types.UID{"a", "b"} {
		pod := podOf(container("web"))
		pod.UID = uid
		up(t, f, rt, pod)
	}
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "a"}))
	assert.Equal(t, []string{"web"}, f.running(), "the other pod is not changed")
}

// A static pod whose manifest is removed and created again, which has the same UID, has not
// crashed. The kubelet removes its dead containers in between if it has time to.
func TestAPodThatWasKilledHasNoCrashBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		up(t, f, rt, pod)
		for range 3 {
			require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
			require.Empty(t, f.running())
			time.Sleep(time.Second)
			begun := time.Now()
			syncs(t, rt, pod)
			require.Equal(t, []string{"web"}, f.running())
			assert.Less(t, time.Since(begun), 10*time.Second)
		}
		f.exits("web", 1)
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorContains(t, err, "CrashLoopBackOff", "a crash has")
	})
}
