package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// Spec 4.18, rt-36, rt-40.
func TestRestartAll(t *testing.T) {
	const rule = " policy=Never rule=RestartAllContainers:In:42 "
	check(t, []row{
		{"rt-138 an exit that matches", `
			pod Never
			container web` + rule + `
			container log
			sandbox s0
			has log#0 running
			has web#0 exited=42`,
			"stop and remove log-0; remove trigger web-0"},
		{"rt-138 an exit that does not", `
			pod Never
			container web` + rule + `
			container log
			sandbox s0
			has log#0 running
			has web#0 exited=41`,
			"nothing"},
		{"rt-36 a rule without a policy of the container", `
			container web rule=RestartAllContainers:In:42
			container log
			sandbox s0
			has log#0 running
			has web#0 exited=42`,
			"stop and remove log-0; remove trigger web-0"},
		{"rt-35 the first rule that matches", `
			container web policy=Never rule=Restart:In:42
			container log
			sandbox s0
			has log#0 running
			has web#0 exited=42 ran=-900..-800`,
			"start web#1(Exited)"},
		{"rt-40 nothing else is planned", `
			container web` + rule + `
			container log liveness cpu=2
			container app
			ephemeral debug
			sandbox s0
			has log#0 running dead cpu=1
			has app#0 exited=1
			has web#0 exited=42`,
			"stop and remove log-0; remove app-0; remove trigger web-0"},
		{"rt-140 victims, regular before init, triggers last", `
			init setup
			init proxy policy=Always rule=RestartAllContainers:In:42
			container web` + rule + `
			container log
			sandbox s0
			has setup#0 exited=0
			has proxy#0 exited=42
			has log#0 running
			has web#0 exited=42`,
			"stop and remove log-0; remove setup-0; remove trigger web-0; remove trigger proxy-0"},
		{"rt-140 older instances, the trigger last", `
			container web` + rule + `
			container log
			sandbox s0 notready
			has web#0 exited=42
			has log#0 exited=137
			sandbox s1 attempt=1
			has web#1 exited=1
			has log#1 running
			has web#2 exited=42`,
			"remove log-0; stop and remove log-1; remove web-0; remove web-1; remove trigger web-2"},
		{"rt-140 the runtime lost track of one", `
			container web` + rule + `
			container log
			sandbox s0
			has log#0 unknown
			has web#0 exited=42`,
			"stop and remove log-0; remove trigger web-0"},
		{"rt-140 ephemeral containers are left alone", `
			container web` + rule + `
			ephemeral debug
			sandbox s0
			has debug#0 running
			has web#0 exited=42`,
			"remove trigger web-0"},
		{"rt-138 an init container", `
			pod Never
			init setup` + rule + `
			init proxy policy=Always
			container web
			sandbox s0
			has setup#0 exited=42`,
			"remove trigger setup-0"},
		{"rt-138 a sidecar", `
			init proxy policy=Always rule=RestartAllContainers:In:42
			container web
			sandbox s0
			has proxy#0 exited=42
			has web#0 running`,
			"stop and remove web-0; remove trigger proxy-0"},
		{"rt-138 a sidecar that was stopped with its pod is not a trigger", `
			pod OnFailure
			init proxy policy=Always rule=RestartAllContainers:In:137
			container job
			sandbox s0
			has proxy#0 exited=137
			has job#0 exited=0`,
			"killpod(Completed)"},
		{"rt-138 nor one that was stopped with its sandbox", `
			pod OnFailure
			init proxy policy=Always rule=RestartAllContainers:In:137
			container job
			sandbox s0 notready
			has proxy#0 exited=137
			has job#0 exited=137 ran=-900..-800`,
			"killpod(SandboxChanged); sandbox 1; start proxy#1(NewSandbox)"},
		{"rt-138 nor one whose pod failed at init", `
			pod Never
			init proxy policy=Always rule=RestartAllContainers:In:137
			init setup
			container job
			sandbox s0
			has proxy#0 exited=137
			has setup#0 exited=1`,
			"killpod(InitFailed)"},
		{"rt-138 an exit in a former sandbox is over", `
			container web` + rule + `
			sandbox s0 notready
			has web#0 exited=42 ran=-900..-800
			sandbox s1 attempt=1
			has web#1 running`,
			"nothing"},
		{"rt-138 it comes before a new sandbox", `
			pod Never
			container web` + rule + `
			container log
			sandbox s0 notready
			has log#0 exited=0
			has web#0 exited=42`,
			"remove log-0; remove trigger web-0"},
		{"rt-39 without a trigger a lost sandbox is lost", `
			container web` + rule + `
			container log
			sandbox s0 notready
			has log#0 exited=1 ran=-900..-800
			has web#0 running`,
			"killpod(SandboxChanged); sandbox 1; start log#1(NewSandbox)"},
		{"rt-138 one that runs again is not a trigger", `
			container web` + rule + `
			sandbox s0
			has web#1 exited=42
			has web#2 running`,
			"nothing"},
		{"rt-31 not of a deleted pod", `
			pod deleted
			container web` + rule + `
			container log
			sandbox s0
			has log#0 running
			has web#0 exited=42`,
			"nothing"},
		{"rt-143 all are removed: init from the first, counts continue", `
			init setup
			container web` + rule + `
			sandbox s0
			record setup=0 web=3`,
			"start setup#1(New)"},
	})
}

func TestRestartAllOnlyWhereItIsHonoured(t *testing.T) { // rt-33
	for policy, want := range map[string]string{
		"Never":     "nothing",
		"OnFailure": "start web#1(Exited)",
		"Always":    "start web#1(Exited)",
	} {
		s := newModel(t, `
			container web policy=`+policy+` rule=RestartAllContainers:In:42
			container log
			sandbox s0
			has log#0 running
			has web#0 exited=42 ran=-900..-800`)
		s.ignore = true
		assert.Equal(t, want, brief(s.plan()), "the rule is ignored, policy %s applies", policy)
	}
}

// A trigger that exits at once is delayed like a crashing container: its exit is in
// the history when its instance is gone. Containers that were stopped for it are not
// delayed; those that crashed before are (rt-88 … rt-92, rt-95, lq-29).
func TestATriggerIsBackedOff(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		s := newModel(t, `
			init setup
			container web policy=Never rule=RestartAllContainers:In:42
			container log
			container app`)
		var delays []int
		for round := range 8 {
			s.apply(checkPlan(t, s))
			s.exit(s.status.Container("setup"), 0)
			p := checkPlan(t, s)
			require.Len(t, p.Start, 3)
			require.False(t, p.Start[1].InBackoff(), "log was stopped")
			require.Equal(t, round == 1 || round == 2, p.Start[2].InBackoff(), "app crashed in the first round")
			if forgets {
				s.forget(t) // the agent is another one
				p = checkPlan(t, s)
			}
			delays = append(delays, int(p.Start[0].Delay.Seconds()))
			if p.Start[0].InBackoff() {
				s.apply(p)
				s.now = p.Start[0].NotBefore
				p = checkPlan(t, s)
				require.False(t, p.Start[0].InBackoff())
			}
			s.apply(p)
			if round == 0 {
				s.exit(s.status.Container("app"), 1)
				s.apply(checkPlan(t, s)) // restarted at once, and crashes again
				s.now = s.now.Add(time.Second)
				s.exit(s.status.Container("app"), 1)
			}
			s.now = s.now.Add(time.Second)
			s.exit(s.status.Container("web"), 42)
			p = checkPlan(t, s)
			require.NotEmpty(t, p.Remove)
			s.apply(p)
			require.Empty(t, s.status.Containers)
		}
		assert.Equal(t, []int{0, 0, 10, 20, 40, 80, 160, 300}, delays)
	}
}

// An instance that ran long enough starts the back-off sequence again, and the
// runtime's instances take precedence over the history (rt-92).
func TestInstancesTakePrecedenceOverAnExitInTheHistory(t *testing.T) {
	s := newModel(t, `
		container web policy=Never rule=RestartAllContainers:In:42
		container log
		sandbox s0
		record web=5`)
	web := func(from, to int) {
		s.ended = map[string]*runtime.ContainerStatus{"web": {
			RestartCount: 5, Hash: plan.Hash(s.spec("web")), CreatedAt: epoch.Add(time.Duration(from) * time.Second),
			FinishedAt: epoch.Add(time.Duration(to) * time.Second), ExitCode: 42,
		}}
	}
	web(-2, -1)
	assert.Equal(t, "start web#6(New) at 159; start log#0(New)", brief(checkPlan(t, s)))
	web(-602, -1)
	assert.Equal(t, "start web#6(New); start log#0(New)", brief(checkPlan(t, s)))
	web(-2, -1)
	s.spec("web").Image = "nginx:2"
	assert.Equal(t, "start web#6(New); start log#0(New)", brief(checkPlan(t, s)), "it may work now (rt-89)")
	s.spec("web").Image = "nginx:1"
	s.spec("web").RestartPolicy = nil
	require.NoError(t, s.add([]string{"has", "web#6", "exited=1", "ran=-2..0"}))
	p := checkPlan(t, s)
	assert.Equal(t, "start web#7(Exited) at 300; start log#0(New)", brief(p))
	assert.Equal(t, s.status.Container("web"), p.Start[0].Last)
}

// An interrupted restart of all containers continues where it stopped, and does each
// step once (rt-140, rt-143).
func TestRestartAllMayBeInterruptedAnywhere(t *testing.T) {
	const text = `
		pod Never
		init setup
		init proxy policy=Always
		container web policy=Never rule=RestartAllContainers:In:42
		container app policy=Never rule=RestartAllContainers:In:42
		container log
		sandbox s0
		has setup#0 exited=0
		has proxy#0 running
		has log#0 running
		has app#0 exited=42
		has web#0 exited=1
		has web#1 exited=42`
	whole := newModel(t, text).plan().Remove
	require.Len(t, whole, 6)
	for n := range len(whole) + 1 {
		s := newModel(t, text)
		for _, r := range whole[:n] {
			s.remove(r.ID)
		}
		p := checkPlan(t, s)
		if n < len(whole) {
			var left []string
			for _, r := range p.Remove {
				left = append(left, r.ID)
			}
			var want []string
			for _, r := range whole[n:] {
				want = append(want, r.ID)
			}
			require.Equal(t, want, left)
			continue
		}
		assert.Equal(t, "start setup#1(New)", brief(p), "init from its first container")
		assert.Equal(t, "s0", p.SandboxID, "rt-141")
	}
}

func TestCountsAndAttemptsContinueFromTheHistory(t *testing.T) { // rt-75
	s := newModel(t, `
		container web
		container log
		record web=4`)
	in := s.input()
	in.History.SandboxAttempts = 3
	p := computeChecked(t, in)
	assert.Equal(t, "sandbox 3; start web#5(New); start log#0(New)", brief(p))
	assert.True(t, p.Start[0].NoStatus)

	check(t, []row{
		{"the runtime's instances take precedence", `
			container web
			sandbox s0
			record web=4
			has web#6 exited=1 ran=-900..-800`, "start web#7(Exited)"},
		{"the record is newer", `
			container web
			sandbox s0
			record web=6
			has web#4 exited=1 ran=-900..-800`, "start web#7(Exited)"},
		{"lq-13 an attempt older than the history is not resumed", `
			container web
			sandbox s0
			record web=6
			has web#4 created`, "start web#7(Created)"},
		{"lq-13 the latest attempt is", `
			container web
			sandbox s0
			record web=4
			has web#4 created`, "resume web-4(Created)"},
		{"a count without end does not turn", `
			container web
			sandbox s0
			record web=2147483647`, "start web#2147483647(New)"},
	})
}
