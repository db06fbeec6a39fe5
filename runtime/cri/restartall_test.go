package cri_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// demanding returns a container whose exit with 42 restarts its pod.
func demanding(name string) v1.Container {
	c := container(name)
	c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	return c
}

func TestRestartAllContainersInTheSandbox(t *testing.T) { // rt-138, rt-140, rt-141, rt-143
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, seen := f.engine(t, cri.Config{})
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"bye"}}}}
		pod := podOf(web, demanding("boss"))
		pod.Spec.InitContainers = []v1.Container{container("prepare")}
		begin := func() {
			syncs(t, rt, pod)
			f.exits("prepare", 0)
			syncs(t, rt, pod)
		}
		begin()
		require.Equal(t, []string{"boss", "web"}, f.running())
		f.exits("boss", 42)
		f.did()
		seen.take()

		// A failed removal is retried, and the trigger is removed last.
		f.before = failing(1, "RemoveContainer", errors.New("busy"))
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		f.before = nil
		res := syncs(t, rt, pod)
		for _, a := range res.Actions {
			assert.Equal(t, runtime.RemoveContainer, a.Kind)
		}
		assert.Equal(t, []string{
			"StopContainer web", "RemoveContainer web", // and no preStop
			"RemoveContainer web", "RemoveContainer prepare", "RemoveContainer boss",
		}, f.did())
		assert.Len(t, f.sandboxes(), 1)
		assert.Equal(t, fakecri.Ready, f.sandboxes()[0].State)

		begin()
		assert.Equal(t, []string{"boss", "web"}, f.running())
		for _, name := range []string{"prepare", "boss", "web"} {
			assert.EqualValues(t, 1, f.newest(name).Config.Metadata.Attempt, "%s (rt-142)", name)
		}
		assert.Empty(t, syncs(t, rt, pod).Actions)
	})
}

// killedAtCreation syncs the pod by an agent that is killed when the runtime has created the n-th container:
// the creation is not stored.
func killedAtCreation(t *testing.T, f *fakeCRI, rt *cri.Runtime, pod *v1.Pod, n int) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	created := 0
	f.after = func(op, _ string) error {
		if op == "CreateContainer" {
			created++
		}
		if created == n {
			kill()
			return errLost
		}
		return nil
	}
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	require.Error(t, err)
	f.after = nil
}

// An instance whose creation was not stored, because the agent was killed, counts as well.
func TestAnInstanceOfAKilledAgentIsCountedWhenAllContainersRestart(t *testing.T) { // rt-75
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"), demanding("boss"))
		syncs(t, rt, pod)
		f.exits("web", 1)
		time.Sleep(time.Minute)
		killedAtCreation(t, f, rt, pod, 1)
		require.EqualValues(t, 1, f.newest("web").Config.Metadata.Attempt)
		f.exits("boss", 42)
		syncs(t, rt, pod) // removes all
		syncs(t, rt, pod)
		assert.EqualValues(t, 2, f.newest("web").Config.Metadata.Attempt)
	})
}

func TestTheFirstInstanceOfAKilledAgentIsCountedWhenAllContainersRestart(t *testing.T) { // rt-75
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(demanding("boss"), container("web"))
		killedAtCreation(t, f, rt, pod, 2)
		require.EqualValues(t, 0, f.newest("web").Config.Metadata.Attempt)
		f.exits("boss", 42)
		syncs(t, rt, pod) // removes all
		syncs(t, rt, pod)
		assert.EqualValues(t, 1, f.newest("web").Config.Metadata.Attempt)
	})
}

func TestAProbesGracePeriodIsUsedUnchanged(t *testing.T) { // rt-48, rt-108, rt-109
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, seen := f.engine(t, cri.Config{})
		web := container("web")
		web.LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: new(int64(5))}
		pod := podOf(web)
		syncs(t, rt, pod)
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		seen.take()
		f.dies("web", time.Hour)
		begun := time.Now()
		old := f.newest("web").ID
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: st, Probes: &runtime.ProbeResults{
			Liveness: map[string]runtime.ProbeResult{st.Containers[0].ID: runtime.ProbeFailure},
		}})
		require.NoError(t, err)
		assert.Equal(t, 5*time.Second, time.Since(begun))
		assert.Equal(t, []int64{5}, f.graces[old])
		assert.Equal(t, "Normal Killing spec.containers{web}: Container web failed liveness probe, will be restarted", seen.take()[0])
		assert.Equal(t, []string{"web"}, f.running())
		assert.EqualValues(t, 1, f.newest("web").Config.Metadata.Attempt)
	})
}

func TestASidecarHoldsUpThePodUntilItHasStarted(t *testing.T) { // rt-60, rt-61
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{})
	proxy := sidecar("proxy")
	proxy.StartupProbe = &v1.Probe{}
	pod := podOf(container("web"))
	pod.Spec.InitContainers = []v1.Container{proxy}
	step := func(p *runtime.ProbeResults) {
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Probes: p})
		require.NoError(t, err)
	}
	none := &runtime.ProbeResults{}
	step(none)
	step(none)
	assert.Equal(t, []string{"proxy"}, f.running())
	step(&runtime.ProbeResults{Startup: map[string]runtime.ProbeResult{"fake://" + f.newest("proxy").ID: runtime.ProbeSuccess}})
	assert.Equal(t, []string{"proxy", "web"}, f.running())
}

// A container that repeatedly restarts its pod is backed off like one that crashes, also
// after a restart of the agent; the other containers are not
// (rt-88 … rt-94, lq-29).
func TestRestartingAllContainersIsBackedOff(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			next := agents(t, f, cri.Config{})
			rt, seen := next()
			pod := podOf(container("web"), demanding("boss"))
			syncs(t, rt, pod)
			var waits []int
			for round := range 6 {
				time.Sleep(time.Second)
				f.exits("boss", 42)
				begun := time.Now()
				assert.False(t, syncs(t, rt, pod).RetryAt.IsZero(), "another sync is required")
				require.Empty(t, f.containers())
				if restarted {
					rt, seen = next()
				}
				seen.take()
				res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
				assert.Contains(t, f.running(), "web", "web is not backed off")
				if round > 0 {
					require.Error(t, err)
					assert.Equal(t, "CrashLoopBackOff", res.Actions[len(res.Actions)-1].Reason)
					assert.Contains(t, seen.take(), "Warning BackOff spec.containers{boss}: Back-off restarting failed container boss in pod "+
						pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")")
					time.Sleep(time.Until(res.RetryAt) - time.Second)
					_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
					require.Error(t, err)
					time.Sleep(time.Until(res.RetryAt))
					syncs(t, rt, pod)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, []string{"boss", "web"}, f.running())
				waits = append(waits, int(time.Since(begun).Seconds()))
			}
			assert.Equal(t, []int{0, 10, 20, 40, 80, 160}, waits)
			assert.EqualValues(t, 6, f.newest("boss").Config.Metadata.Attempt)
			time.Sleep(time.Second)
			f.exits("boss", 42)
			syncs(t, rt, pod)
			rt.ResetBackoff(pod, "boss")
			syncs(t, rt, pod)
			assert.Equal(t, []string{"boss", "web"}, f.running(), "the back-off was reset")
		})
	}
}

// If an agent dies between creating and starting an ephemeral container, the next one
// starts it, also during initialization (rt-45, lq-13).
func TestAnEphemeralContainerIsStartedByTheNextAgent(t *testing.T) {
	f := newFake()
	f.has("img:1")
	next := agents(t, f, cri.Config{})
	rt, _ := next()
	pod := podOf(container("web"))
	pod.Spec.InitContainers = []v1.Container{container("setup")}
	syncs(t, rt, pod)
	require.Equal(t, []string{"setup"}, f.running())

	pod = pod.DeepCopy()
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug"))}}
	ctx, dies := context.WithCancel(t.Context())
	f.observe = func(c fakecri.Change) {
		if c.To == fakecri.Created && c.Container == "debug" {
			dies()
		}
	}
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	require.Error(t, err)
	require.Equal(t, []string{"setup"}, f.running(), "created, not started")
	f.observe = nil

	rt, _ = next()
	f.did()
	syncs(t, rt, pod)
	assert.Equal(t, []string{"StartContainer debug"}, f.did(), "no second instance")
	f.exits("debug", 1)
	f.exits("setup", 0)
	syncs(t, rt, pod)
	assert.Equal(t, []string{"web"}, f.running(), "it runs once")
}
