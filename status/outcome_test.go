package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestAPodThatRunsOnceFailsIfItsSandboxEndsBetweenTwoContainers(t *testing.T) { // rt-41
	pod := podOf(v1.RestartPolicyNever, "a", "b")
	created := instance("b", 0, runtime.ContainerCreated)
	for name, tc := range map[string]struct {
		observed *runtime.PodStatus
		want     v1.PodPhase
	}{
		"none has run":                 {stopped(instance("a", 0, runtime.ContainerCreated), created), v1.PodPending},
		"one succeeded":                {stopped(exitedC("a", 0, 0), created), v1.PodFailed},
		"one failed":                   {stopped(exitedC("a", 0, 1)), v1.PodFailed},
		"the state of one is lost":     {stopped(instance("a", 0, runtime.ContainerUnknown)), v1.PodFailed},
		"both succeeded":               {stopped(exitedC("a", 0, 0), exitedC("b", 0, 0)), v1.PodSucceeded},
		"the sandbox is usable":        {seen(exitedC("a", 0, 0), created), v1.PodPending},
		"the runtime has no sandboxes": {&runtime.PodStatus{Containers: []runtime.ContainerStatus{bare(exitedC("a", 0, 0))}}, v1.PodPending},
		"its address is not known yet": {withoutIP(seen(exitedC("a", 0, 0))), v1.PodPending},
		"one is seen running still":    {stopped(runningC("a", 0), created), v1.PodPending},
	} {
		t.Run(name, func(t *testing.T) {
			s := status.Compute(status.Facts{Pod: pod, Observed: tc.observed, Now: t0})
			assert.Equal(t, tc.want, s.Phase)
		})
	}
}

func bare(c runtime.ContainerStatus) runtime.ContainerStatus {
	c.SandboxID = ""
	return c
}

func withoutIP(s *runtime.PodStatus) *runtime.PodStatus {
	s.Sandboxes[0].IPs = nil
	return s
}

func TestAnInitContainerThatRanOutOfMemoryHasFailedWhateverItsExitCode(t *testing.T) { // rt-64
	oom := exitedC("i", 0, 0)
	oom.Reason = "OOMKilled"
	never := withInit(podOf(v1.RestartPolicyNever, "a"), "i")
	s := status.Compute(status.Facts{Pod: never, Observed: stopped(oom), Now: t0})
	assert.Equal(t, v1.PodFailed, s.Phase)
	assert.Equal(t, v1.ConditionFalse, status.Condition(s.Conditions, v1.PodInitialized).Status)
	assert.False(t, s.InitContainerStatuses[0].Ready)
	final := status.Terminate(never, s, t0)
	assert.NotNil(t, final.ContainerStatuses[0].State.Waiting, "it has not been started, so it is not lost")

	// It is reported as waiting, because the API server takes an exit with code 0 for final.
	again := withInit(podOf(v1.RestartPolicyOnFailure, "a"), "i")
	s = status.Compute(status.Facts{Pod: again, Observed: seen(oom), Now: t0})
	assert.Equal(t, v1.PodPending, s.Phase)
	require.NotNil(t, s.InitContainerStatuses[0].State.Waiting)
	require.NotNil(t, s.InitContainerStatuses[0].LastTerminationState.Terminated)
	assert.Equal(t, "OOMKilled", s.InitContainerStatuses[0].LastTerminationState.Terminated.Reason)
	next := status.Compute(status.Facts{Pod: again, Previous: s, Observed: seen(runningC("i", 1), oom), Now: t0})
	require.NoError(t, status.CheckTransition(again, &s, &next))
	assert.NotNil(t, next.InitContainerStatuses[0].State.Running)

	regular := exitedC("a", 0, 0)
	regular.Reason = "OOMKilled"
	s = status.Compute(status.Facts{Pod: podOf(v1.RestartPolicyNever, "a"), Observed: stopped(regular), Now: t0})
	assert.Equal(t, v1.PodSucceeded, s.Phase, "for other containers the exit code decides")
}

// The API server rejects a status in which a terminated container with the exit code 0 runs.
func TestAnInitContainerThatRunsAgainInANewSandboxStaysTerminatedInTheStatus(t *testing.T) { // st-50
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyNever, v1.RestartPolicyOnFailure} {
		pod := withInit(podOf(policy, "a"), "i")
		var illegal []error
		m := started(t, status.Config{Sink: new(status.MemorySink), Hooks: status.Hooks{IllegalRestart: func(_ *v1.Pod, err error) { illegal = append(illegal, err) }}})
		m.Report(pod, seen(exitedC("i", 0, 0)), nil, runtime.Termination{})
		s := m.Report(pod, seen(runningC("i", 1), exitedC("i", 0, 0)), nil, runtime.Termination{})
		assert.NotNil(t, s.InitContainerStatuses[0].State.Terminated)
		assert.Equal(t, v1.PodPending, s.Phase)
		assert.Empty(t, illegal, "this is no fault of the runtime")
		s = m.Report(pod, seen(exitedC("i", 1, 0), exitedC("i", 0, 0)), nil, runtime.Termination{})
		assert.Equal(t, int32(1), s.InitContainerStatuses[0].RestartCount)
	}
}

func TestALostEphemeralContainerHasTerminated(t *testing.T) { // rt-45
	pod := podOf(v1.RestartPolicyAlways, "a")
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e"}}}
	s := status.Compute(status.Facts{Pod: pod, Observed: seen(runningC("a", 0), runningC("e", 0)), Now: t0})
	require.NotNil(t, s.EphemeralContainerStatuses[0].State.Running)
	for range 2 {
		s = status.Compute(status.Facts{Pod: pod, Previous: s, Observed: seen(runningC("a", 0)), Now: t0})
		require.NotNil(t, s.EphemeralContainerStatuses[0].State.Terminated, "it does not wait for a restart")
		assert.EqualValues(t, 137, s.EphemeralContainerStatuses[0].State.Terminated.ExitCode)
		assert.Zero(t, s.EphemeralContainerStatuses[0].RestartCount)
	}
}

// The exits of init containers and regular containers in former sandboxes do not count.
func TestAPodIsPendingAfterARebootUntilItsInitContainersAreDone(t *testing.T) { // st-22
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure} {
		pod := withInit(podOf(policy, "a"), "i", "j")
		former := []runtime.ContainerStatus{exitedC("a", 0, 255), exitedC("j", 0, 0), exitedC("i", 0, 0)}
		for i := range former {
			former[i].SandboxID = "x://former"
		}
		m := started(t, status.Config{Sink: new(status.MemorySink)})
		report := func(starts map[string]v1.ContainerStateWaiting, now ...runtime.ContainerStatus) v1.PodStatus {
			return m.Report(pod, seen(append(now, former...)...), starts, runtime.Termination{})
		}
		m.Report(pod, seen(runningC("a", 0), exitedC("j", 0, 0), exitedC("i", 0, 0)), nil, runtime.Termination{})
		down := seen(former...)
		down.Sandboxes[0].State = runtime.SandboxNotReady
		assert.Equal(t, v1.PodRunning, m.Report(pod, down, nil, runtime.Termination{}).Phase, "the sandbox will be replaced")

		assert.Equal(t, v1.PodPending, report(nil).Phase)
		failing := map[string]v1.ContainerStateWaiting{"i": {Reason: "ErrImagePull"}}
		assert.Equal(t, v1.PodPending, report(failing).Phase, "the first init container cannot start")
		i, j := exitedC("i", 1, 0), exitedC("j", 1, 0)
		for _, now := range [][]runtime.ContainerStatus{
			{instance("i", 1, runtime.ContainerCreated)}, {runningC("i", 1)}, {i}, {runningC("j", 1), i}, {j, i},
			{instance("a", 1, runtime.ContainerCreated), j, i},
		} {
			want := v1.PodPending
			if now[0].Name == "a" || now[0].Name == "j" && now[0].State == runtime.ContainerExited {
				want = v1.PodRunning // as its regular container waits for its restart
			}
			assert.Equal(t, want, report(nil, now...).Phase, "%s %s", now[0].Name, now[0].State)
		}
		assert.Equal(t, v1.PodRunning, report(nil, runningC("a", 1), j, i).Phase)
	}
}
