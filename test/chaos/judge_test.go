package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// told is a pod in a phase, with a container that was restarted so often.
func told(shape string, phase v1.PodPhase, restarts int32, id string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: shape + "-1", UID: types.UID("u"), Labels: map[string]string{"shape": shape}},
		Status: v1.PodStatus{Phase: phase, ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", RestartCount: restarts, ContainerID: "containerd://" + id,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}},
		}}},
	}
}

func ended(shape string, phase v1.PodPhase, id string, code int32) *v1.Pod {
	pod := told(shape, phase, 0, id)
	pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ContainerID: "containerd://" + id, ExitCode: code, Reason: "Error", StartedAt: metav1.NewTime(noon), FinishedAt: metav1.NewTime(noon.Add(10 * time.Second)),
	}}
	return pod
}

// deleted is the end of a pod that was deleted 10 s after its start; it took
// so long to end.
func deleted(shape string, code int32, took time.Duration) *v1.Pod {
	pod := ended(shape, v1.PodFailed, "a", code)
	grace := shapeNamed(shape).grace
	asked := noon.Add(10 * time.Second)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(asked.Add(time.Duration(grace)*time.Second))), &grace
	pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(asked.Add(took))
	return pod
}

func runs(id string, attempt uint32) instance {
	return instance{id: id, uid: "u", container: "main", attempt: attempt, created: noon.Add(time.Duration(attempt) * time.Minute), running: true}
}

func exited(id string, attempt uint32, code int32) instance {
	is := runs(id, attempt)
	is.running, is.exited, is.code = false, true, code
	return is
}

// Each history violates the invariant that it is named after, and no other; or none.
func TestTheJudgeKnowsTheLaws(t *testing.T) {
	list := func(j *judge, all ...instance) { j.runtime([]box{{id: "s", uid: "u", ready: true}}, all) }
	for name, story := range map[string]struct {
		broken string
		tell   func(*judge)
	}{
		"a good life": {"", func(j *judge) {
			j.status(told("crasher", v1.PodPending, 0, ""))
			list(j, runs("a", 0))
			j.status(told("crasher", v1.PodRunning, 0, "a"))
			list(j, exited("a", 0, 3))
			list(j, exited("a", 0, 3), runs("b", 1))
			j.status(told("crasher", v1.PodRunning, 1, "b"))
			j.removed("u")
		}},
		"two run": {oneInstance, func(j *judge) { j.status(told("steady", v1.PodRunning, 0, "a")); list(j, runs("a", 0), runs("b", 1)) }},
		"two sandboxes": {oneSandbox, func(j *judge) {
			j.runtime([]box{{id: "s", uid: "u", ready: true}, {id: "t", uid: "u", ready: true}}, nil)
		}},
		"two sandboxes, one of them dead": {"", func(j *judge) {
			j.runtime([]box{{id: "s", uid: "u"}, {id: "t", uid: "u", ready: true}}, nil)
		}},
		"an attempt comes again": {restartCountIncreases, func(j *judge) { list(j, exited("a", 1, 0)); list(j, runs("b", 1)) }},
		"restarts are forgotten": {reportedRestartCount, func(j *judge) {
			j.status(told("crasher", v1.PodRunning, 2, "a"))
			j.status(told("crasher", v1.PodRunning, 1, "a"))
		}},
		"it was running, and is pending": {terminalPhaseFinal, func(j *judge) {
			j.status(told("steady", v1.PodRunning, 0, "a"))
			j.status(told("steady", v1.PodPending, 0, "a"))
		}},
		"it had failed, and has succeeded": {terminalPhaseFinal, func(j *judge) {
			j.status(ended("failure", v1.PodFailed, "a", 4))
			j.status(ended("failure", v1.PodSucceeded, "a", 4))
		}},
		"an earlier instance is shown": {reportedInstanceNewer, func(j *judge) {
			list(j, exited("a", 0, 3), runs("b", 1))
			j.status(told("crasher", v1.PodRunning, 1, "b"))
			j.status(told("crasher", v1.PodRunning, 1, "a"))
		}},
		"one is made of a pod that has ended": {terminalNeverRestarts, func(j *judge) {
			j.status(ended("failure", v1.PodFailed, "a", 4))
			later := runs("b", 1)
			later.created = noon.Add(2 * time.Hour)
			list(j, exited("a", 0, 4), later)
		}},
		"ended and ready": {notReady, func(j *judge) {
			pod := ended("success", v1.PodSucceeded, "a", 0)
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
			j.status(pod)
		}},
		"another exit code": {exitCodesCorrect, func(j *judge) {
			list(j, exited("a", 0, 4))
			j.status(ended("failure", v1.PodFailed, "a", 0))
		}},
		"it terminates without a reason": {undisturbed, func(j *judge) {
			j.status(told("steady", v1.PodRunning, 0, "a"))
			list(j, runs("a", 0))
			list(j, exited("a", 0, 0))
		}},
		"it is removed without a reason": {undisturbed, func(j *judge) {
			j.status(told("steady", v1.PodRunning, 0, "a"))
			list(j, runs("a", 0))
			list(j)
		}},
		"it ends, for a fault is about it": {"", func(j *judge) {
			j.status(told("steady", v1.PodRunning, 0, "a"))
			list(j, runs("a", 0))
			j.touch("steady-1")
			list(j, exited("a", 0, 137))
		}},
		"it ends, after the fault was over": {undisturbed, func(j *judge) {
			j.status(told("steady", v1.PodRunning, 0, "a"))
			list(j, runs("a", 0))
			j.touch("steady-1")
			j.settled()
			list(j, exited("a", 0, 137))
		}},
		"it is deleted, and ends": {"", func(j *judge) {
			j.status(told("steady", v1.PodRunning, 0, "a"))
			list(j, runs("a", 0))
			j.deleting("steady-1")
			list(j, exited("a", 0, 0))
			j.status(deleted("steady", 0, time.Second))
			j.removed("u")
		}},
		"it is killed in time, and deleted once more": {"", func(j *judge) {
			j.status(deleted("stubborn", 137, 4*time.Second))
			again := deleted("stubborn", 137, 4*time.Second)
			again.DeletionGracePeriodSeconds, again.DeletionTimestamp = new(int64), new(metav1.NewTime(noon.Add(time.Minute)))
			j.status(again)
			j.removed("u")
		}},
		"its exit is unknown": {gracePeriodGiven, func(j *judge) {
			pod := deleted("steady", 255, time.Second)
			pod.Status.ContainerStatuses[0].State.Terminated.Reason = "Unknown"
			j.status(pod)
			j.removed("u")
		}},
		"its exit is unknown, and containerd was killed": {"", func(j *judge) {
			pod := deleted("steady", 255, time.Second)
			pod.Status.ContainerStatuses[0].State.Terminated.Reason = "Unknown"
			j.containerdKilled()
			j.status(pod)
			j.removed("u")
		}},
		"it has no time to end":        {gracePeriodGiven, func(j *judge) { j.status(deleted("graceful", 137, time.Second)); j.removed("u") }},
		"it is killed before its time": {gracePeriodGiven, func(j *judge) { j.status(deleted("stubborn", 137, time.Second)); j.removed("u") }},
		"it is killed in time":         {"", func(j *judge) { j.status(deleted("stubborn", 137, 4*time.Second)); j.removed("u") }},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge()
			j.now = func() time.Time { return noon.Add(time.Hour) }
			story.tell(j)
			var names []string
			for _, v := range j.broken() {
				names = append(names, v.invariant)
			}
			if story.broken == "" {
				assert.Empty(t, j.broken())
				return
			}
			assert.Equal(t, []string{story.broken}, names)
		})
	}
}

func TestAViolationThatLastsIsToldOnce(t *testing.T) {
	j := newJudge()
	for range 3 {
		j.check(logsReadable, false, "web", "no file")
	}
	assert.Len(t, j.broken(), 1)
	assert.Equal(t, 3, j.total())
}

func TestAShimThatContainerdHasLostIsKnown(t *testing.T) {
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
