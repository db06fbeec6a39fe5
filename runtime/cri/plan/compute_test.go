package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A row is a model and its plan as brief formats it; the name begins with the rules
// that the row tests.
type row struct{ name, model, want string }

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			assert.Equal(t, r.want, brief(newModel(t, r.model).plan()))
		})
	}
}

// Spec 4.6 and 4.7.
func TestRegularContainers(t *testing.T) {
	const old = " ran=-900..-800 " // long enough ago for any back-off
	check(t, []row{
		{"rt-32 no status", `
			container web
			sandbox s0`,
			"start web#0(New)"},
		{"rt-32 running", `
			container web
			sandbox s0
			has web#0 running`,
			"nothing"},
		{"rt-34 Always", `
			container web
			sandbox s0
			has web#0 exited=0` + old,
			"start web#1(Exited)"},
		{"rt-34 OnFailure", `
			pod OnFailure
			container web
			container log
			sandbox s0
			has web#0 exited=0` + old + `
			has log#0 exited=2` + old,
			"start log#1(Exited)"},
		{"rt-34 Never", `
			pod Never
			container web
			container log
			sandbox s0
			has web#0 exited=1` + old + `
			has log#0 running`,
			"nothing"},
		{"rt-33 own policy", `
			pod Never
			container web policy=Always
			sandbox s0
			has web#0 exited=0` + old,
			"start web#1(Exited)"},
		{"rt-35 rule", `
			pod Never
			container web policy=Never rule=Restart:In:42
			sandbox s0
			has web#0 exited=42` + old,
			"start web#1(Exited)"},
		{"rt-30 definition changed, whatever the policy", `
			pod Never
			container web
			sandbox s0
			has web#0 running made=nginx:0`,
			"kill web-0(DefinitionChanged); start web#1(DefinitionChanged)"},
		{"rt-30 an unknown hash is no change", `
			container web
			sandbox s0
			has web#0 running nohash`,
			"nothing"},
		{"rt-30 a terminated container is not restarted for it", `
			pod Never
			container web
			container log
			sandbox s0
			has web#0 exited=0 made=nginx:0
			has log#0 running`,
			"nothing"},
		{"rt-47 unknown: kill first", `
			pod OnFailure
			container web
			sandbox s0
			has web#0 unknown`,
			"kill web-0(UnknownState); start web#1(UnknownState)"},
		{"rt-47 unknown: one that runs once does not run again", `
			pod Never
			container web
			container log
			sandbox s0
			has web#0 unknown
			has log#0 running`,
			"kill web-0(UnknownState)"},
		{"rt-47 an older unknown one may be running", `
			container web
			sandbox s0
			has web#0 unknown
			has web#1 exited=1` + old,
			"kill web-0(UnknownState); start web#2(Exited)"},
		{"rt-47 unknown in a dead sandbox is dead", `
			container web
			sandbox s0 notready
			has web#0 unknown
			sandbox s1 attempt=1`,
			"start web#1(NewSandbox)"},
		{"rt-50 all have terminated", `
			pod Never
			container web
			sandbox s0
			has web#0 exited=0`,
			"killpod(Completed)"},
		{"rt-50 sidecars do not keep it up", `
			pod OnFailure
			init proxy policy=Always
			container job
			sandbox s0
			has proxy#0 exited=1
			has job#0 exited=0`,
			"killpod(Completed)"},
		{"rt-51 ephemeral containers neither", `
			pod Never
			container job
			ephemeral debug
			ephemeral debug2
			sandbox s0
			has job#0 exited=0
			has debug#0 running`,
			"killpod(Completed)"},
		{"rt-75 counts run on over sandboxes", `
			container web
			sandbox s0 notready
			has web#7 exited=1` + old + `
			sandbox s1 attempt=1`,
			"start web#8(NewSandbox)"},
		{"rt-75 counts never fall", `
			container web
			sandbox s0
			has web#3 exited=1` + old + `
			has web#1 exited=1` + old,
			"start web#4(Exited)"},
	})
}

// lq-12, lq-13
func TestSeveralInstances(t *testing.T) {
	check(t, []row{
		{"lq-12 an older running one counts as running", `
			container web
			sandbox s0
			has web#0 running
			has web#1 exited=1`,
			"nothing"},
		{"lq-12 also when a newer one was only created", `
			container web
			sandbox s0
			has web#0 running
			has web#1 created`,
			"nothing"},
		{"lq-12 extra copies go, the oldest last", `
			container web
			sandbox s0
			has web#0 running
			has web#1 running
			has web#2 running`,
			"kill web-1(Duplicate); kill web-0(Duplicate)"},
		{"lq-12 the copy with the right definition stays", `
			container web
			sandbox s0
			has web#0 running
			has web#1 running made=nginx:0`,
			"kill web-1(Duplicate)"},
		{"lq-12 no copy matches: all are stopped, one is started", `
			container web
			sandbox s0
			has web#0 running made=nginx:0
			has web#1 running made=nginx:0`,
			"kill web-0(Duplicate); kill web-1(DefinitionChanged); start web#2(DefinitionChanged)"},
		{"a copy in a former sandbox is stopped", `
			container web
			sandbox s0 notready
			has web#0 running
			sandbox s1 attempt=1
			has web#1 running`,
			"kill web-0(OldSandbox)"},
		{"and is replaced in this one", `
			container web
			sandbox s0 notready
			has web#0 running
			sandbox s1 attempt=1`,
			"kill web-0(OldSandbox); start web#1(NewSandbox)"},
		{"lq-13 created and never started is resumed", `
			container web
			sandbox s0
			has web#0 exited=1 ran=0..0
			has web#1 created`,
			"resume web-1(Created)"},
		{"lq-13 not from an older definition", `
			container web
			sandbox s0
			has web#0 created made=nginx:0`,
			"start web#1(Created)"},
		{"lq-13 not from an unknown one", `
			container web
			sandbox s0
			has web#0 created nohash`,
			"start web#1(Created)"},
		{"lq-13 not from a former sandbox", `
			container web
			sandbox s0 notready
			has web#0 created
			sandbox s1 attempt=1`,
			"start web#1(NewSandbox)"},
		{"lq-13 not a superseded attempt", `
			container web
			sandbox s0
			has web#1 exited=1 ran=-900..-800
			has web#0 created`,
			"start web#2(Created)"},
	})
}

func TestEphemeralContainers(t *testing.T) {
	check(t, []row{
		{"rt-45 started, before init is done", `
			init setup
			container web
			ephemeral debug
			sandbox s0
			has setup#0 running`,
			"start debug#0(New)"},
		{"rt-45 never restarted", `
			container web
			ephemeral debug
			sandbox s0
			has web#0 running
			has debug#0 exited=1`,
			"nothing"},
		{"rt-45 not in another sandbox either", `
			container web
			ephemeral debug
			sandbox s0 notready
			has debug#0 exited=1
			sandbox s1 attempt=1
			has web#0 running`,
			"nothing"},
		{"rt-45 nor after its instance was removed", `
			container web
			ephemeral debug
			record debug=0
			sandbox s0
			has web#0 running`,
			"nothing"},
		{"rt-45 never killed for its spec", `
			container web
			ephemeral debug
			sandbox s0
			has web#0 running
			has debug#0 running made=nginx:0`,
			"nothing"},
		{"lq-13 created and never started is resumed", `
			container web
			ephemeral debug
			sandbox s0
			has web#0 running
			has debug#0 created`,
			"resume debug-0(Created)"},
		{"rt-45 lq-13 also before init is done, and with it", `
			init setup
			container web
			ephemeral debug
			ephemeral other
			sandbox s0
			has setup#0 exited=1 ran=-900..-800
			has debug#0 created`,
			"resume debug-0(Created); start other#0(New); start setup#1(Exited)"},
		{"rt-45 before init has begun", `
			init setup
			container web
			ephemeral debug
			sandbox s0`,
			"start debug#0(New); start setup#0(New)"},
		{"rt-45 it does not wait for an init container in back-off", `
			init setup
			container web
			ephemeral debug
			sandbox s0
			has setup#1 exited=1 ran=-2..-1`,
			"start debug#0(New); start setup#2(Exited) at 9"},
		{"rt-45 a container in state unknown has run", `
			container web
			ephemeral debug
			sandbox s0
			has web#0 running
			has debug#0 unknown`,
			"nothing"},
		{"lq-13 made from another spec it is not this one", `
			container web
			ephemeral debug
			sandbox s0
			has web#0 running
			has debug#0 created made=nginx:0`,
			"nothing"},
		{"4.9 order: ephemeral, init, regular", `
			init proxy policy=Always
			container web
			container log
			ephemeral debug
			sandbox s0
			has proxy#0 exited=1 ran=-900..-800
			has web#0 exited=1 ran=-900..-800`,
			"start debug#0(New); start proxy#1(Exited); start web#1(Exited); start log#0(New)"},
	})
}

func TestDeletedPodsAreNotStarted(t *testing.T) {
	check(t, []row{
		{"rt-31 nothing created yet", `
			pod deleted
			container web`,
			"nothing"},
		{"rt-31 no sandbox is made", `
			pod deleted
			container web
			sandbox s0 notready
			has web#0 running`,
			"killpod(SandboxChanged)"},
		{"rt-31 exited containers are not restarted", `
			pod deleted
			container web
			container log
			sandbox s0
			has web#0 exited=1
			has log#0 running made=nginx:0`,
			"nothing"},
		{"rt-31 initialization continues", `
			pod deleted
			init setup
			container web
			sandbox s0
			has setup#0 running`,
			"nothing"},
		{"rt-50 only sidecars are running", `
			pod deleted
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 running
			has web#0 exited=1`,
			"killpod(Completed)"},
	})
}

func TestAnEmptyInputYieldsAnEmptyPlan(t *testing.T) {
	p := plan.Compute(plan.Input{})
	assert.True(t, p.Empty())
	assert.Equal(t, "nothing to do", p.String())

	s := newModel(t, "container web")
	s.status = nil
	assert.Equal(t, "sandbox 0; start web#0(New)", brief(s.plan()))
}

// The checkpoint may be lost, or be that of a kubelet; the API still has the status.
func TestAnEphemeralContainerThatWasReportedDoesNotRunAgain(t *testing.T) { // rt-45, k/k 124176
	s := newModel(t, `
		container web
		ephemeral debug
		sandbox s0
		has web#0 running`)
	s.pod.Status.EphemeralContainerStatuses = []v1.ContainerStatus{{Name: "debug", State: v1.ContainerState{Waiting: new(v1.ContainerStateWaiting)}}}
	assert.Equal(t, "start debug#0(New)", brief(s.plan()))
	s.pod.Status.EphemeralContainerStatuses[0].State = v1.ContainerState{Terminated: new(v1.ContainerStateTerminated)}
	assert.Equal(t, "nothing", brief(s.plan()))
}
