package cri_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A line is an event of a termination with its time.
type line struct {
	at   time.Duration
	what string
}

// scenario records the events, hooks and stops of an engine over f.
func (f *fakeCRI) scenario(t *testing.T, cfg cri.Config) (*cri.Runtime, func() []line) {
	t.Helper()
	var mu sync.Mutex
	var lines []line
	begun := time.Now()
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line{time.Since(begun), what})
	}
	cfg.Name, cfg.Runtime, cfg.Images = "fake", f, f
	cfg.Record = func(e runtime.Event) { note(e.Reason + " " + e.Object.FieldPath) }
	rt := newRuntime(t, cfg)
	inner := f.before
	f.before = func(op, name string) error {
		if op == "ExecSync" || op == "StopContainer" || op == "StopPodSandbox" || op == "RemovePodSandbox" {
			note(op + " " + name)
		}
		if inner != nil {
			return inner(op, name)
		}
		return nil
	}
	return rt, func() []line {
		mu.Lock()
		defer mu.Unlock()
		reported := lines
		lines, begun = nil, time.Now()
		return reported
	}
}

// when returns the time of the first line equal to what, in seconds, or -1 if there
// is none.
func when(lines []line, what string) float64 {
	for _, l := range lines {
		if l.what == what {
			return l.at.Seconds()
		}
	}
	return -1
}

// The steps are the event, the hook, the turn and TERM, in that order; the hook's time
// is subtracted from the grace period (rt-112).
func TestTheStepsOfAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, reported := f.scenario(t, cri.Config{})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PreStop: execHook("bye")}
		proxy := sidecar("proxy")
		proxy.Lifecycle = web.Lifecycle
		pod := podOf(web)
		pod.Spec.InitContainers = []v1.Container{proxy}
		up(t, f, rt, pod)
		f.exec = func(_ context.Context, name string, _ []string) error {
			time.Sleep(map[string]time.Duration{"web": 3 * time.Second, "proxy": time.Second}[name])
			return nil
		}
		f.dies("web", 4*time.Second)
		reported()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		lines := reported()
		for what, want := range map[string]float64{
			"Killing spec.containers{web}": 0, "Killing spec.initContainers{proxy}": 0,
			"ExecSync web": 0, "ExecSync proxy": 0, // of a sidecar, too, at once (rt-119)
			"StopContainer web": 3, "StopContainer proxy": 7, "StopPodSandbox web/0": 7,
		} {
			assert.Equal(t, want, when(lines, what), what)
		}
		assert.Less(t, index(lines, "Killing spec.containers{web}"), index(lines, "ExecSync web"))
		assert.Equal(t, "StopPodSandbox web/0", lines[len(lines)-1].what)
		assert.Equal(t, []int64{27}, f.stops("web"))
		assert.Equal(t, []int64{23}, f.stops("proxy"), "its hook and its wait are subtracted from the grace period (rt-118)")
	})
}

func index(lines []line, what string) int {
	for i, l := range lines {
		if l.what == what {
			return i
		}
	}
	return -1
}

// The duration of a hook is subtracted from the grace period in whole seconds (rt-105).
func TestHooksAreSubtractedInWholeSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		hook time.Duration
		want int64
	}{
		"rt-105 none":               {0, 30},
		"rt-105 less than a second": {999 * time.Millisecond, 30},
		"rt-105 a second":           {time.Second, 29},
		"rt-105 almost two":         {1999 * time.Millisecond, 29},
		"rt-105 nothing left":       {29500 * time.Millisecond, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				rt, _ := f.engine(t, cri.Config{})
				web := container("web")
				web.Lifecycle = &v1.Lifecycle{PreStop: execHook("bye")}
				pod := podOf(web)
				up(t, f, rt, pod)
				f.exec = func(context.Context, string, []string) error { time.Sleep(tc.hook); return nil }
				require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
				assert.Equal(t, []int64{tc.want}, f.stops("web"))
			})
		})
	}
}

// The time of each container's TERM, in seconds from the kill.
func TestTurnsOfAStop(t *testing.T) {
	for _, tc := range []struct {
		name  string
		init  []v1.Container
		main  []string
		world func(*fakeCRI)
		turns map[string]float64 // -1: never
		takes time.Duration
	}{
		{"rt-114 all concurrently", nil, []string{"web", "db", "log"}, func(f *fakeCRI) {
			for _, name := range []string{"web", "db", "log"} {
				f.dies(name, 5*time.Second)
			}
		}, map[string]float64{"web": 0, "db": 0, "log": 0}, 5 * time.Second},
		{"rt-115 an init container that is not a sidecar has no turn", []v1.Container{container("setup")}, []string{"web"}, func(f *fakeCRI) {
			f.dies("web", 5*time.Second)
		}, map[string]float64{"web": 0, "setup": -1}, 5 * time.Second},
		{"rt-116 later sidecars before earlier ones", []v1.Container{sidecar("net"), sidecar("proxy")}, []string{"web"}, func(f *fakeCRI) {
			f.dies("web", 5*time.Second)
			f.dies("proxy", 2*time.Second)
		}, map[string]float64{"web": 0, "proxy": 5, "net": 7}, 7 * time.Second},
		{"rt-117 exited containers are not waited for", []v1.Container{sidecar("net"), sidecar("proxy")}, []string{"web", "db"}, func(f *fakeCRI) {
			f.exits("web", 0)
			f.exits("proxy", 1)
			f.dies("db", 3*time.Second)
		}, map[string]float64{"web": -1, "db": 0, "proxy": -1, "net": 3}, 3 * time.Second},
		{"rt-117 nothing else runs", []v1.Container{sidecar("net")}, []string{"web"}, func(f *fakeCRI) {
			f.exits("web", 0)
		}, map[string]float64{"web": -1, "net": 0}, 0},
		{"rt-118 the wait ends with the grace", []v1.Container{sidecar("net"), sidecar("proxy")}, []string{"web"}, func(f *fakeCRI) {
			f.dies("web", time.Hour)
		}, map[string]float64{"web": 0, "proxy": 30, "net": 30}, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				rt, reported := f.scenario(t, cri.Config{})
				pod := podOf()
				for _, name := range tc.main {
					pod.Spec.Containers = append(pod.Spec.Containers, container(name))
				}
				pod.Spec.InitContainers = tc.init
				up(t, f, rt, pod)
				tc.world(f)
				reported()
				begun := time.Now()
				require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
				assert.Equal(t, tc.takes, time.Since(begun))
				lines := reported()
				for name, want := range tc.turns {
					assert.Equal(t, want, when(lines, "StopContainer "+name), name)
				}
			})
		})
	}
}

// A container that could not be stopped may still be running, so it is not treated
// as stopped: sidecars wait for it until their grace period ends (rt-120).
func TestSidecarsWaitForContainersThatCouldNotBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.before = func(op, name string) error {
			if op == "StopContainer" && name == "web" {
				return errors.New("shim is deaf")
			}
			return nil
		}
		rt, reported := f.scenario(t, cri.Config{})
		pod := podOf(container("web"))
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
		up(t, f, rt, pod)
		reported()
		require.ErrorContains(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}), "shim is deaf")
		lines := reported()
		assert.Equal(t, 0., when(lines, "StopContainer web"))
		assert.Equal(t, 30., when(lines, "StopContainer proxy"))
		assert.Equal(t, 30., when(lines, "StopPodSandbox web/0"), "the sandbox is stopped nevertheless (rt-122)")
		assert.Equal(t, []int64{2}, f.stops("proxy"))
	})
}

// If the runtime is unavailable for a part of the grace period, the stop is retried: TERM
// is sent late, but before the sandbox is stopped, which kills the containers.
func TestARuntimeThatRecoversWithinTheGracePeriodIsAskedToStopAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		begun := time.Now()
		f.before = func(op, name string) error {
			if away := time.Since(begun); op == "StopContainer" && away > 0 && away < 2*time.Second {
				return status.Error(codes.Unavailable, "no such file or directory")
			}
			return nil
		}
		rt, reported := f.scenario(t, cri.Config{})
		pod := podOf(container("web"))
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
		up(t, f, rt, pod)
		time.Sleep(time.Millisecond)
		reported()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		lines := reported()
		assert.Equal(t, 2., when(lines, "StopContainer proxy"), "after the fifth call for web")
		assert.Equal(t, 2., when(lines, "StopPodSandbox web/0"))
		assert.Equal(t, []int64{28}, f.stops("proxy"))
		stops := f.stops("web")
		assert.EqualValues(t, 28, stops[len(stops)-1])
	})
}

// The stop is not retried after the end of the grace period.
func TestARuntimeThatStaysAwayIsNotAskedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		up(t, f, rt, pod)
		f.before = func(op, _ string) error {
			if op == "StopContainer" || op == "StopPodSandbox" {
				return status.Error(codes.Unavailable, "no such file or directory")
			}
			return nil
		}
		begun := time.Now()
		err := rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(3))})
		require.ErrorIs(t, err, runtime.ErrUnavailable)
		assert.Less(t, time.Since(begun), 4*time.Second)
	})
}

// A stop of a pod stops its running containers, then every sandbox; it removes none.
// Containers that are gone by then are stopped, too (rt-121).
func TestKillPodStopsEverySandbox(t *testing.T) {
	f := newFake()
	f.held("u-1", "s0", 0, 0, "web/0 exited")
	f.holds("u-1", "s1", 1, 1, "created/0", "exited/0 exited", "web/1 running", "db/0 running")
	f.holds("u-2", "s2", 0, 0, "web/0 running")
	f.before = func(op, name string) error {
		if op == "StopContainer" && name == "db" {
			f.exits("db", 0)
		}
		if op == "StopPodSandbox" && name == "s0" || op == "StopContainer" && name == "db" {
			return status.Error(codes.NotFound, "not found")
		}
		return nil
	}
	rt, reported := f.scenario(t, cri.Config{})
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "u-1"}))
	var stops []string
	for _, l := range reported() {
		if l.what[:4] == "Stop" || l.what[:4] == "Remo" {
			stops = append(stops, l.what)
		}
	}
	require.Len(t, stops, 4)
	assert.ElementsMatch(t, []string{"StopContainer web", "StopContainer db"}, stops[:2])
	assert.Equal(t, []string{"StopPodSandbox s1", "StopPodSandbox s0"}, stops[2:])
	assert.Equal(t, []string{"web"}, f.running(), "the other pod's container")
}

// A sandbox that cannot be stopped fails the step that stops it, with this message
// (rt-122).
func TestASandboxThatCannotBeStoppedIsReported(t *testing.T) {
	f := newFake()
	rt, _ := f.engine(t, cri.Config{})
	pod := podOf(container("web"))
	up(t, f, rt, pod)
	require.NoError(t, f.mem.KillSandbox(string(pod.UID)))
	f.before = failing(1, "StopPodSandbox", status.Error(codes.Unknown, "no such network"))
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.Error(t, err)
	require.Len(t, res.Actions, 1, "no other sandbox is created")
	assert.Equal(t, runtime.KillPodSandbox, res.Actions[0].Kind)
	assert.Equal(t, "KillPodSandboxError", res.Actions[0].Reason)
	assert.Len(t, f.sandboxes(), 1)
}

// preStop does not run for a container that exited by itself, or when all containers of
// its pod are restarted (rt-106).
func TestWhenPreStopIsNotRun(t *testing.T) {
	for name, end := range map[string]func(*fakeCRI){
		"rt-106 it exited by itself": func(f *fakeCRI) { f.exits("web", 1) },
		"rt-106 the pod starts over": func(f *fakeCRI) { f.exits("boss", 42) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				rt, reported := f.scenario(t, cri.Config{})
				web := container("web")
				web.Lifecycle = &v1.Lifecycle{PreStop: execHook("bye")}
				pod := podOf(web, demanding("boss"))
				up(t, f, rt, pod)
				end(f)
				reported()
				for range 3 {
					syncs(t, rt, pod)
				}
				assert.Equal(t, []string{"boss", "web"}, f.running())
				assert.EqualValues(t, 1, f.newest("web").Config.Metadata.Attempt, "it was replaced")
				assert.Equal(t, -1., when(reported(), "ExecSync web"), "no hook")
			})
		})
	}
}

// A container that was removed from the spec is stopped with the pod's grace period. The
// kubelet leaves it running and returns an error (rt-107).
func TestAContainerThatTheSpecHasNoLongerIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, reported := f.scenario(t, cri.Config{})
		pod := podOf(container("web"), container("old"))
		up(t, f, rt, pod)
		pod = pod.DeepCopy()
		pod.Spec.Containers = pod.Spec.Containers[:1]
		reported()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		assert.Equal(t, []int64{30}, f.stops("old"))
		assert.Equal(t, 0., when(reported(), "StopContainer old"))
	})
}
