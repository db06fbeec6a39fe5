package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// reported is a pod in a phase, with a container that was restarted this number of times.
func reported(shape string, phase v1.PodPhase, restarts int32, id string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: shape + "-1", UID: types.UID("u"), Labels: map[string]string{"shape": shape}},
		Status: v1.PodStatus{Phase: phase, ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", RestartCount: restarts, ContainerID: "containerd://" + id,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}},
		}}},
	}
}

func terminated(shape string, phase v1.PodPhase, id string, code int32) *v1.Pod {
	pod := reported(shape, phase, 0, id)
	pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ContainerID: "containerd://" + id, ExitCode: code, Reason: "Error", StartedAt: metav1.NewTime(noon), FinishedAt: metav1.NewTime(noon.Add(10 * time.Second)),
	}}
	return pod
}

// deleted is the last status of a pod that was deleted 10 s after its start and took this time to terminate.
func deleted(shape string, code int32, took time.Duration) *v1.Pod {
	pod := terminated(shape, v1.PodFailed, "a", code)
	grace := shapeNamed(shape).grace
	asked := noon.Add(10 * time.Second)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(asked.Add(time.Duration(grace)*time.Second))), &grace
	pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(asked.Add(took))
	return pod
}

func runs(id string, attempt int32) instance {
	created := noon.Add(time.Duration(attempt) * time.Minute)
	return instance{runtime.ContainerStatus{ID: runtimePrefix + id, Name: "main", RestartCount: attempt, CreatedAt: created, State: runtime.ContainerRunning}, "u"}
}

func exited(id string, attempt, code int32) instance {
	is := runs(id, attempt)
	is.State, is.ExitCode = runtime.ContainerExited, code
	return is
}

func readyBox(id string) box {
	return box{SandboxStatus: runtime.SandboxStatus{ID: id, State: runtime.SandboxReady}, uid: "u"}
}

// Each sequence of observations violates one invariant, or none.
func TestViolationsAreReported(t *testing.T) {
	list := func(c *checker, all ...instance) { c.runtime([]box{readyBox("s")}, all) }
	for name, test := range map[string]struct {
		violated string
		observe  func(*checker)
	}{
		"no violation": {"", func(c *checker) {
			c.status(reported("crasher", v1.PodPending, 0, ""))
			list(c, runs("a", 0))
			c.status(reported("crasher", v1.PodRunning, 0, "a"))
			list(c, exited("a", 0, 3))
			list(c, exited("a", 0, 3), runs("b", 1))
			c.status(reported("crasher", v1.PodRunning, 1, "b"))
			c.removed("u")
		}},
		"two instances run": {oneInstance, func(c *checker) {
			c.status(reported("steady", v1.PodRunning, 0, "a"))
			list(c, runs("a", 0), runs("b", 1))
		}},
		"two sandboxes": {oneSandbox, func(c *checker) {
			c.runtime([]box{readyBox("s"), readyBox("t")}, nil)
		}},
		"two sandboxes, one of them stopped": {"", func(c *checker) {
			c.runtime([]box{{uid: "u"}, readyBox("t")}, nil)
		}},
		"an attempt is repeated": {restartCountIncreases, func(c *checker) { list(c, exited("a", 1, 0)); list(c, runs("b", 1)) }},
		"the restart count decreases": {reportedRestartCount, func(c *checker) {
			c.status(reported("crasher", v1.PodRunning, 2, "a"))
			c.status(reported("crasher", v1.PodRunning, 1, "a"))
		}},
		"pending after running": {runningNotPending, func(c *checker) {
			c.status(reported("steady", v1.PodRunning, 0, "a"))
			c.status(reported("steady", v1.PodPending, 0, "a"))
		}},
		"succeeded after failed": {terminalPhaseFinal, func(c *checker) {
			c.status(terminated("failure", v1.PodFailed, "a", 4))
			c.status(terminated("failure", v1.PodSucceeded, "a", 4))
		}},
		"an earlier instance is reported": {reportedInstanceNewer, func(c *checker) {
			list(c, exited("a", 0, 3), runs("b", 1))
			c.status(reported("crasher", v1.PodRunning, 1, "b"))
			c.status(reported("crasher", v1.PodRunning, 1, "a"))
		}},
		"a container of a terminated pod": {terminalNeverRestarts, func(c *checker) {
			c.status(terminated("failure", v1.PodFailed, "a", 4))
			later := runs("b", 1)
			later.CreatedAt = noon.Add(2 * time.Hour)
			list(c, exited("a", 0, 4), later)
		}},
		"terminated and ready": {notReady, func(c *checker) {
			pod := terminated("success", v1.PodSucceeded, "a", 0)
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
			c.status(pod)
		}},
		"another exit code": {exitCodesCorrect, func(c *checker) {
			list(c, exited("a", 0, 4))
			c.status(terminated("failure", v1.PodFailed, "a", 0))
		}},
		"exit without a reason": {undisturbed, func(c *checker) {
			c.status(reported("steady", v1.PodRunning, 0, "a"))
			list(c, runs("a", 0))
			list(c, exited("a", 0, 0))
		}},
		"removal without a reason": {undisturbed, func(c *checker) {
			c.status(reported("steady", v1.PodRunning, 0, "a"))
			list(c, runs("a", 0))
			list(c)
		}},
		"exit because of a fault": {"", func(c *checker) {
			c.status(reported("steady", v1.PodRunning, 0, "a"))
			list(c, runs("a", 0))
			c.touch("steady-1")
			list(c, exited("a", 0, 137))
		}},
		"exit after the recovery from a fault": {undisturbed, func(c *checker) {
			c.status(reported("steady", v1.PodRunning, 0, "a"))
			list(c, runs("a", 0))
			c.touch("steady-1")
			c.settled()
			list(c, exited("a", 0, 137))
		}},
		"deletion and exit": {"", func(c *checker) {
			c.status(reported("steady", v1.PodRunning, 0, "a"))
			list(c, runs("a", 0))
			c.deleting("steady-1")
			list(c, exited("a", 0, 0))
			c.status(deleted("steady", 0, time.Second))
			c.removed("u")
		}},
		"killed after the grace period, and deleted again": {"", func(c *checker) {
			c.status(deleted("stubborn", 137, 4*time.Second))
			again := deleted("stubborn", 137, 4*time.Second)
			again.DeletionGracePeriodSeconds, again.DeletionTimestamp = new(int64), new(metav1.NewTime(noon.Add(time.Minute)))
			c.status(again)
			c.removed("u")
		}},
		"unknown exit": {gracePeriodGiven, func(c *checker) {
			pod := deleted("steady", 255, time.Second)
			pod.Status.ContainerStatuses[0].State.Terminated.Reason = "Unknown"
			c.status(pod)
			c.removed("u")
		}},
		"unknown exit, and containerd was killed": {"", func(c *checker) {
			pod := deleted("steady", 255, time.Second)
			pod.Status.ContainerStatuses[0].State.Terminated.Reason = "Unknown"
			c.containerdKilled()
			c.status(pod)
			c.removed("u")
		}},
		"killed before the exit":                    {gracePeriodGiven, func(c *checker) { c.status(deleted("graceful", 137, time.Second)); c.removed("u") }},
		"killed before the end of the grace period": {gracePeriodGiven, func(c *checker) { c.status(deleted("stubborn", 137, time.Second)); c.removed("u") }},
		"killed after the grace period":             {"", func(c *checker) { c.status(deleted("stubborn", 137, 4*time.Second)); c.removed("u") }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChecker()
			c.now = func() time.Time { return noon.Add(time.Hour) }
			test.observe(c)
			var names []string
			for _, v := range c.broken() {
				names = append(names, v.invariant)
			}
			if test.violated == "" {
				assert.Empty(t, c.broken())
				return
			}
			assert.Equal(t, []string{test.violated}, names)
		})
	}
}

func TestALastingViolationIsReportedOnce(t *testing.T) {
	c := newChecker()
	for range 3 {
		c.check(logsReadable, false, "web", "no file")
	}
	assert.Len(t, c.broken(), 1)
	assert.Equal(t, 3, c.total())
}

func TestAShimThatContainerdHasLostIsRecognized(t *testing.T) {
	const made = `level=info msg="CreateContainer within sandbox \"box\" for name:\"main\" returns container id \"c\""` + "\n"
	const failed = `level=error msg="StartContainer for \"c\" failed" error="failed to create containerd task: context canceled"` + "\n"
	const removed = `level=info msg="RemovePodSandbox \"box\" returns successfully"` + "\n"
	assert.True(t, leaks(made+failed+removed, "box"))
	for _, log := range []string{"", made + failed, made + removed, failed + removed} {
		assert.False(t, leaks(log, "box"), log)
	}
	assert.False(t, leaks(made+failed+removed, "another"))
	const never = `level=error msg="RunPodSandbox failed" error="failed to start sandbox \"box\": failed to create containerd task: context canceled"` + "\n"
	assert.True(t, leaks(never, "box"))
	assert.False(t, leaks(never, "another"))
	const lost = `level=error msg="failed to load shim /x/box" error="unable to load shim \"box\": failed to read bootstrap.json when restoring bundle"` + "\n"
	assert.True(t, leaks(lost+removed, "box"), "it was killed before it knew of the shim")
	assert.False(t, leaks(lost, "box"))
	assert.False(t, leaks(lost+removed, "another"))
}

func TestALogIsRead(t *testing.T) {
	const at = "2026-11-21T12:00:00.5Z stdout F "
	for name, test := range map[string]struct {
		data string
		want reading
	}{
		"nothing":      {"", reading{}},
		"all":          {at + "line 0\n" + at + "line 1\n", reading{lines: 2}},
		"not finished": {at + "line 0\n" + at + "li", reading{lines: 1}},
		"a gap":        {at + "line 0\n" + at + "line 3\n", reading{lines: 2, gaps: 2}},
		"torn":         {at + "line 0\nstdout F line 1\n" + at + "line 2\n", reading{lines: 2, torn: 1, gaps: 1}},
		"no time":      {"noon stdout F line 0\n", reading{torn: 1}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, readLog(test.data)) })
	}
	assert.ErrorContains(t, readLog(at+"line 0\n"+at+"line 0\n").err, "line 0 comes again after line 0")
}
