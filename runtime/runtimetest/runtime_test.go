package runtimetest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// newPod returns a pod with these regular containers, whose images are their
// names.
func newPod(uid types.UID, containers ...string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), Namespace: "default", UID: uid}}
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Image: name})
	}
	return pod
}

func mustSync(t *testing.T, rt runtime.Runtime, pod *v1.Pod) runtime.SyncResult {
	t.Helper()
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.NoError(t, err)
	return res
}

func mustLook(t *testing.T, rt runtime.Runtime, uid types.UID) *runtime.PodStatus {
	t.Helper()
	s, err := rt.PodStatus(t.Context(), uid)
	require.NoError(t, err)
	return s
}

func TestStartCreatesAPodWithoutASpec(t *testing.T) {
	rt := new(runtimetest.Runtime)
	id := rt.Start("web", "nginx")
	s := mustLook(t, rt, "web")
	assert.Equal(t, "web", s.Name)
	assert.Equal(t, "default", s.Namespace)
	assert.Equal(t, []string{"10.0.0.1"}, s.IPs)
	require.Len(t, s.Containers, 1)
	assert.Equal(t, id, s.Containers[0].ID)
	assert.Equal(t, runtime.ContainerRunning, s.Containers[0].State)

	twin := rt.Start("web", "nginx")
	s = mustLook(t, rt, "web")
	require.Len(t, s.Containers, 2)
	assert.Equal(t, twin, s.Containers[0].ID, "newest first")
	assert.Equal(t, int32(1), s.Containers[0].RestartCount)
	assert.Len(t, s.Sandboxes, 1)
}

func TestExitAndHangNameAContainerThatDoesNotRun(t *testing.T) {
	rt := new(runtimetest.Runtime)
	assert.EqualError(t, rt.Exit("web", "nginx", 1), "runtimetest: no container nginx runs in pod web")
	rt.Start("web", "nginx")
	require.NoError(t, rt.Exit("web", "nginx", 1))
	assert.EqualError(t, rt.Hang("web", "nginx"), "runtimetest: no container nginx runs in pod web")
	assert.Equal(t, "Error", mustLook(t, rt, "web").Containers[0].Reason)
}

func TestAContainerRunsForItsTimeAndExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("job", fake.Behavior{Exit: &fake.Exit{After: time.Minute, Code: 137, Reason: "OOMKilled"}})
		pod := newPod("p", "job")
		mustSync(t, rt, pod)
		began := time.Now()

		time.Sleep(time.Minute - 1)
		assert.Equal(t, runtime.ContainerRunning, mustLook(t, rt, "p").Containers[0].State)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c := mustLook(t, rt, "p").Containers[0]
		assert.Equal(t, runtime.ContainerExited, c.State)
		assert.Equal(t, began.Add(time.Minute), c.FinishedAt)
		assert.Equal(t, int32(137), c.ExitCode)
		assert.Equal(t, "OOMKilled", c.Reason)
	})
}

func TestNamesCountBeforeImages(t *testing.T) {
	rt := new(runtimetest.Runtime)
	rt.Behave("image", fake.Behavior{Fail: &fake.Failure{Reason: "ErrImagePull", Message: "no such image"}})
	rt.Behave("named", fake.Behavior{})
	pod := newPod("p", "named", "other")
	pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image = "image", "image"
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.EqualError(t, err, `failed to "StartContainer" for "other" with ErrImagePull: "no such image"`)
	require.Len(t, res.Actions, 3)
	assert.NoError(t, res.Actions[1].Err)
	s := mustLook(t, rt, "p")
	require.Len(t, s.Containers, 1, "a failed start leaves no container")
	assert.Equal(t, "named", s.Containers[0].Name)
}

func TestBackOffIsReportedWithItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &runtimetest.Runtime{Backoff: 10 * time.Second}
		pod := newPod("p", "web")
		mustSync(t, rt, pod)
		require.NoError(t, rt.Exit("p", "web", 1))
		mustSync(t, rt, pod) // the first restart is at once
		require.NoError(t, rt.Exit("p", "web", 1))

		time.Sleep(time.Second)
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		require.Len(t, res.Actions, 1)
		assert.Equal(t, "CrashLoopBackOff", res.Actions[0].Reason)
		assert.Equal(t, time.Now().Add(9*time.Second), res.RetryAt)

		time.Sleep(time.Until(res.RetryAt))
		mustSync(t, rt, pod)
		assert.Equal(t, int32(2), mustLook(t, rt, "p").Container("web").RestartCount)
	})
}

func TestCrashTakesTheSandboxAndSyncPodMakesTheNext(t *testing.T) {
	rt := new(runtimetest.Runtime)
	pod := newPod("p", "web")
	mustSync(t, rt, pod)
	rt.Crash("p")
	rt.Crash("another")
	s := mustLook(t, rt, "p")
	assert.False(t, s.Running())
	assert.Empty(t, s.IPs)
	assert.Equal(t, int32(137), s.Container("web").ExitCode)

	res := mustSync(t, rt, pod)
	require.Len(t, res.Actions, 2)
	assert.Equal(t, runtime.Action{Kind: runtime.CreatePodSandbox, Target: "p_default"}, res.Actions[0])
	s = mustLook(t, rt, "p")
	assert.Equal(t, uint32(1), s.Sandboxes[0].Attempt)
	assert.Equal(t, []string{"10.0.0.2"}, s.IPs)
	assert.Equal(t, s.Sandboxes[0].ID, s.Container("web").SandboxID)
	assert.Len(t, mustPods(t, rt)[0].Sandboxes, 2)
}

func mustPods(t *testing.T, rt runtime.Runtime) []*runtime.Pod {
	t.Helper()
	pods, err := rt.Pods(t.Context())
	require.NoError(t, err)
	return pods
}

func TestRemoveLeavesNothingAndEndsAKillThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Start("p", "web")
		require.NoError(t, rt.Hang("p", "web"))
		time.AfterFunc(time.Second, func() { rt.Remove("p") })
		began := time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "p", GracePeriodSeconds: new(int64(60))}))
		assert.Equal(t, time.Second, time.Since(began))
		assert.Empty(t, mustPods(t, rt))
		rt.Remove("p")
	})
}

// An earlier agent may start a container while another one kills the pod.
func TestKillPodStopsContainersThatAreStartedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("slow", fake.Behavior{StopDelay: 2 * time.Second})
		rt.Start("p", "slow")
		time.AfterFunc(time.Second, func() { rt.Start("p", "late") })
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "p", GracePeriodSeconds: new(int64(60))}))
		assert.False(t, mustLook(t, rt, "p").Running())
	})
}

func TestHangDelaysTheBehavior(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web", fake.Behavior{Exit: &fake.Exit{After: time.Second}})
		rt.Start("p", "web")
		require.NoError(t, rt.Hang("p", "web"))
		time.Sleep(time.Hour)
		assert.True(t, in(mustLook(t, rt, "p"), "web", runtime.ContainerRunning))
		require.NoError(t, rt.Exit("p", "web", 0), "a test can still end it")
	})
}

func in(s *runtime.PodStatus, name string, state runtime.ContainerState) bool {
	c := s.Container(name)
	return c != nil && c.State == state
}

// inv-11: a sidecar receives TERM when every regular container has exited.
func TestSidecarsAreStoppedAfterTheRestLastOneFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		for _, name := range []string{"web", "proxy", "logs"} {
			rt.Behave(name, fake.Behavior{StopDelay: time.Second})
		}
		pod := newPod("p", "web")
		for _, name := range []string{"logs", "proxy"} {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers,
				v1.Container{Name: name, Image: name, RestartPolicy: new(v1.ContainerRestartPolicyAlways)})
		}
		for range 3 {
			mustSync(t, rt, pod)
		}
		began := time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "p", Pod: pod, GracePeriodSeconds: new(int64(30))}))
		s := mustLook(t, rt, "p")
		for i, name := range []string{"web", "proxy", "logs"} {
			assert.Equal(t, time.Duration(i+1)*time.Second, s.Container(name).FinishedAt.Sub(began), name)
			assert.Equal(t, int32(143), s.Container(name).ExitCode, name)
		}

		mustSync(t, rt, pod) // again, and now without time for their turn
		mustSync(t, rt, pod)
		mustSync(t, rt, pod)
		require.NoError(t, rt.Hang("p", "web"))
		began = time.Now()
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "p", Pod: pod, GracePeriodSeconds: new(int64(3))}))
		assert.Equal(t, 3*time.Second, time.Since(began))
		assert.False(t, mustLook(t, rt, "p").Running())
	})
}

func TestRestartAllRestartsThePodInItsSandbox(t *testing.T) { // rt-140, rt-141
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		pod := newPod("p", "trigger", "web")
		c := &pod.Spec.Containers[0]
		c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
		c.RestartPolicyRules = []v1.ContainerRestartRule{{
			Action:    v1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{88}},
		}}
		mustSync(t, rt, pod)
		before := mustLook(t, rt, "p")
		require.NoError(t, rt.Exit("p", "trigger", 88))
		mustSync(t, rt, pod)
		after := mustLook(t, rt, "p")
		require.Len(t, after.Containers, 2)
		for _, c := range after.Containers {
			assert.Equal(t, int32(1), c.RestartCount, c.Name)
			assert.Equal(t, runtime.ContainerRunning, c.State, c.Name)
		}
		assert.Equal(t, before.Sandboxes, after.Sandboxes)
	})
}

func TestAnEndlessGracePeriodIsNoShortOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Start("p", "web")
		require.NoError(t, rt.Hang("p", "web"))
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		err := rt.KillPod(ctx, runtime.KillRequest{UID: "p", GracePeriodSeconds: new(int64(math.MaxInt64))})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "p", GracePeriodSeconds: new(int64(-1))}), "negative means zero")
		assert.Equal(t, int32(137), mustLook(t, rt, "p").Container("web").ExitCode)
	})
}

func TestRequestsWithoutAPodAreRefused(t *testing.T) {
	rt := new(runtimetest.Runtime)
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{})
	assert.EqualError(t, err, "runtimetest: sync pod: SyncRequest.Pod is nil or has no UID")
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: &v1.Pod{}})
	assert.Error(t, err)
	assert.EqualError(t, rt.KillPod(t.Context(), runtime.KillRequest{}), "runtimetest: kill pod: KillRequest.UID is empty")
	assert.Empty(t, mustPods(t, rt))
}

func TestFaultsApplyToTheirCalls(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name    string
		fault   fake.Fault
		err     error
		took    time.Duration
		started bool
	}{
		{"none", fake.Fault{}, nil, 0, true},
		{"an error", fake.Fault{Err: boom}, boom, 0, false},
		{"a delay", fake.Fault{Delay: time.Second}, nil, time.Second, true},
		{"a delay beyond the context", fake.Fault{Delay: time.Hour}, context.DeadlineExceeded, time.Minute, false},
		{"a hang", fake.Fault{Hang: true}, context.DeadlineExceeded, time.Minute, false},
		{"a lost answer", fake.Fault{Lost: true, Err: boom}, boom, 0, true},
		{"a response that hangs", fake.Fault{Lost: true, Hang: true}, context.DeadlineExceeded, time.Minute, true},
		{"a late, lost answer", fake.Fault{Lost: true, Delay: time.Second}, fake.ErrLost, time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := new(runtimetest.Runtime)
				rt.Inject(func(c fake.Call) fake.Fault {
					if c.Method == "SyncPod" && c.Pod == "p" && c.Number == 1 {
						return tc.fault
					}
					return fake.Fault{}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: newPod("p", "web")})
				assert.ErrorIs(t, err, tc.err)
				assert.Equal(t, tc.took, time.Since(began))
				assert.Equal(t, tc.err == nil, len(res.Actions) > 0)
				assert.Equal(t, tc.started, in(mustLook(t, rt, "p"), "web", runtime.ContainerRunning))

				rt.Inject(nil)
				mustSync(t, rt, newPod("p", "web"))
				assert.Len(t, mustLook(t, rt, "p").Containers, 1, "no second instance")
			})
		})
	}
}

func TestEveryMethodCanFail(t *testing.T) {
	boom := errors.New("boom")
	rt := new(runtimetest.Runtime)
	id := rt.Start("p", "web")
	calls := map[string]func() (any, error){
		"Pods":      func() (any, error) { return rt.Pods(t.Context()) },
		"PodStatus": func() (any, error) { return rt.PodStatus(t.Context(), "p") },
		"KillPod":   func() (any, error) { return nil, rt.KillPod(t.Context(), runtime.KillRequest{UID: "p"}) },
		"Check":     func() (any, error) { return rt.Check(t.Context()) },
		"Watch":     func() (any, error) { return nil, rt.Watch(t.Context(), func(types.UID) {}) },
		"Exec":      func() (any, error) { return rt.Exec(t.Context(), id, []string{"true"}, 0) },
		"CollectGarbage": func() (any, error) {
			return nil, rt.CollectGarbage(t.Context(), runtime.GCPolicy{})
		},
	}
	for method, call := range calls {
		rt.Inject(func(c fake.Call) fake.Fault {
			if c.Method == method {
				return fake.Fault{Err: boom}
			}
			return fake.Fault{}
		})
		out, err := call()
		assert.ErrorIs(t, err, boom, method)
		assert.Empty(t, out, method)
	}
	rt.Inject(nil)
	assert.True(t, mustLook(t, rt, "p").Running(), "nothing took effect")
}

func TestAWatchReportsEachChangedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		ctx, cancel := context.WithCancel(t.Context())
		hints := map[types.UID]int{}
		go func() {
			assert.NoError(t, rt.Watch(ctx, func(uid types.UID) { hints[uid]++ }))
		}()
		synctest.Wait()
		for i := range 1000 {
			rt.Start(types.UID(fmt.Sprint("p", i)), "web")
		}
		synctest.Wait()
		assert.Len(t, hints, 1000)

		clear(hints)
		for _, act := range []struct {
			what string
			do   func()
		}{
			{"an exit", func() { assert.NoError(t, rt.Exit("p7", "web", 0)) }},
			{"a start", func() { rt.Start("p7", "web") }},
			{"a crash", func() { rt.Crash("p7") }},
			{"a collection", func() { assert.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{})) }},
			{"a removal", func() { rt.Remove("p7") }},
		} {
			act.do()
			synctest.Wait()
			assert.NotZero(t, hints["p7"], act.what)
			assert.Len(t, hints, 1, act.what)
			clear(hints)
		}
		cancel()
	})
}

func BenchmarkPods(b *testing.B) {
	rt := new(runtimetest.Runtime)
	for i := range 1000 {
		for _, name := range []string{"a", "b", "c"} {
			rt.Start(types.UID(fmt.Sprint("p", i)), name)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if pods, err := rt.Pods(b.Context()); err != nil || len(pods) != 1000 {
			b.Fatal(len(pods), err)
		}
	}
}

func TestAListCanBeStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var age time.Duration
		var rt runtimetest.Runtime
		rt.Inject(func(c fake.Call) fake.Fault { return fake.Fault{Stale: age} })
		list := func() (containers []string) {
			pods, err := rt.Pods(t.Context())
			require.NoError(t, err)
			for _, p := range pods {
				for _, c := range p.Containers {
					containers = append(containers, fmt.Sprint(p.UID, " ", c.Name, " ", c.State))
				}
			}
			return containers
		}
		time.Sleep(time.Second)
		rt.Start("u", "c") // at 1 s
		time.Sleep(time.Second)
		require.NoError(t, rt.Exit("u", "c", 0)) // at 2 s
		time.Sleep(time.Second)
		rt.Remove("u") // at 3 s
		time.Sleep(time.Second)
		running, exited := []string{fmt.Sprint("u c ", runtime.ContainerRunning)}, []string{fmt.Sprint("u c ", runtime.ContainerExited)}
		for ago, want := range map[time.Duration][]string{
			0: nil, 900 * time.Millisecond: nil, 1500 * time.Millisecond: exited, 2500 * time.Millisecond: running, 3500 * time.Millisecond: nil, time.Hour: nil,
		} {
			age = ago
			assert.Equal(t, want, list(), "%v ago", ago)
		}
	})
}

func TestAContainerCrashesSoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt runtimetest.Runtime
		rt.Behave("c", fake.Behavior{Exit: &fake.Exit{After: time.Second, Code: 1, Crashes: 2}})
		for range 5 {
			_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: newPod("u", "c")})
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		status, err := rt.PodStatus(t.Context(), "u")
		require.NoError(t, err)
		assert.EqualValues(t, 2, status.Containers[0].RestartCount)
		assert.Equal(t, runtime.ContainerRunning, status.Containers[0].State)
	})
}
