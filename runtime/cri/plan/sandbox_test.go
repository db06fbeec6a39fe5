package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// Spec 4.4, rt-39 … rt-44, se-12.
func TestSandbox(t *testing.T) {
	check(t, []row{
		{"4.4 no sandbox", `
			pod Always
			container web`,
			"sandbox 0; start web#0(New)"},
		{"4.4 two are ready", `
			container web
			sandbox s0
			has web#0 running
			sandbox s1 attempt=1`,
			"killpod(SandboxChanged); sandbox 2; start web#1(NewSandbox)"},
		{"4.4 the newest is not ready", `
			container web
			sandbox s0 notready
			has web#0 exited=137 ran=-900..-800`,
			"killpod(SandboxChanged); sandbox 1; start web#1(NewSandbox)"},
		{"4.4 the newest is in an unknown state", `
			container web
			sandbox s0 attempt=4 unknown`,
			"killpod(SandboxChanged); sandbox 5; start web#0(New)"},
		{"4.4 an older one that is down does not matter", `
			container web
			sandbox s0 notready
			sandbox s1 attempt=1
			has web#0 running`,
			"nothing"},
		{"4.4 host network added to the spec", `
			pod hostnetwork
			container web
			sandbox s0
			has web#0 running`,
			"killpod(SandboxChanged); sandbox 1; start web#1(NewSandbox)"},
		{"4.4 host network removed from the spec", `
			container web
			sandbox s0 hostnetwork`,
			"killpod(SandboxChanged); sandbox 1; start web#0(New)"},
		{"4.4 no IP", `
			container web
			sandbox s0 noip`,
			"killpod(SandboxChanged); sandbox 1; start web#0(New)"},
		{"4.4 host network needs no IP", `
			pod hostnetwork
			container web
			sandbox s0 hostnetwork noip`,
			"start web#0(New)"},
		{"rt-41 a pod that runs once is not run twice", `
			pod Never
			container web
			container log
			sandbox s0 notready
			has web#0 running in=s0`,
			"killpod(SandboxChanged)"},
		{"rt-41 also after the container has exited", `
			pod Never
			container web
			sandbox s0 notready
			has web#0 exited=137`,
			"nothing"},
		{"rt-41 the sandbox has been removed", `
			pod Never
			container web
			container log
			has web#0 exited=0`,
			"nothing"},
		{"rt-41 no container was made yet", `
			pod Never
			container web
			sandbox s0 notready`,
			"killpod(SandboxChanged); sandbox 1; start web#0(New)"},
		{"rt-41 a container was created and has not run", `
			pod Never
			container web
			sandbox s0 notready
			has web#0 created`,
			"killpod(SandboxChanged); sandbox 1; start web#1(NewSandbox)"},
		{"rt-41 the init container has succeeded, the image is being pulled", `
			pod Never
			init setup
			container web
			sandbox s0 notready
			has setup#0 exited=0`,
			"killpod(SandboxChanged); sandbox 1; start setup#1(NewSandbox)"},
		{"rt-41 the init container has succeeded, the container was created", `
			pod Never
			init setup
			container web
			sandbox s0 notready
			has setup#0 exited=0
			has web#0 created`,
			"killpod(SandboxChanged); sandbox 1; start setup#1(NewSandbox)"},
		{"rt-41 the init container was created", `
			pod Never
			init setup
			container web
			sandbox s0 notready
			has setup#0 created`,
			"killpod(SandboxChanged); sandbox 1; start setup#1(NewSandbox)"},
		{"rt-41 a sidecar has run", `
			pod Never
			init proxy policy=Always
			container web
			sandbox s0 notready
			has proxy#0 exited=137 ran=-900..-800
			has web#0 created`,
			"killpod(SandboxChanged); sandbox 1; start proxy#1(NewSandbox)"},
		{"rt-41 a debugging container has run", `
			pod Never
			container web
			ephemeral debug
			sandbox s0 notready
			has debug#0 exited=0`,
			"killpod(SandboxChanged); sandbox 1; start web#0(New)"},
		{"rt-41 the sandbox of a created container has been removed", `
			pod Never
			container web
			has web#0 created`,
			"sandbox 0; start web#1(NewSandbox)"},
		{"rt-41 one of two containers has run", `
			pod Never
			container web
			container log
			sandbox s0 notready
			has web#0 exited=0
			has log#0 created`,
			"nothing"},
		{"rt-41 the init container was running", `
			pod Never
			init setup
			container web
			sandbox s0 notready
			has setup#0 exited=137`,
			"nothing"},
		{"rt-41 a container with its own policy continues the pod", `
			pod Never
			container web
			container sync policy=Always
			sandbox s0 notready
			has web#0 exited=0
			has sync#0 exited=1 ran=-900..-800`,
			"killpod(SandboxChanged); sandbox 1; start sync#1(NewSandbox)"},
		{"rt-38 a policy of its own that is Never does not", `
			pod Never
			container web
			container sync policy=Never
			sandbox s0 notready
			has web#0 exited=0`,
			"nothing"},
		{"rt-38 a rule does", `
			pod Never
			container web
			container sync policy=Never rule=Restart:In:3
			sandbox s0 notready
			has web#0 exited=0
			has sync#0 exited=3 ran=-900..-800`,
			"killpod(SandboxChanged); sandbox 1; start sync#1(NewSandbox)"},
		{"rt-39 although containers run in it", `
			init proxy policy=Always
			container web
			sandbox s0 notready
			has proxy#0 running
			has web#0 running`,
			"killpod(SandboxChanged); sandbox 1; start proxy#1(NewSandbox)"},
		{"rt-42 succeeded containers with OnFailure are omitted", `
			pod OnFailure
			container web
			container job
			sandbox s0 notready
			has web#0 exited=1 ran=-900..-800
			has job#0 exited=0 ran=-900..-800`,
			"killpod(SandboxChanged); sandbox 1; start web#1(NewSandbox)"},
		{"rt-42 and stays left out in the new sandbox", `
			pod OnFailure
			container web
			container job
			sandbox s0 notready
			has web#0 exited=1
			has job#0 exited=0
			sandbox s1 attempt=1
			has web#1 running`,
			"nothing"},
		{"rt-42 the container's own policy takes precedence", `
			pod Always
			container web
			container job policy=OnFailure
			sandbox s0 notready
			has job#0 exited=0`,
			"killpod(SandboxChanged); sandbox 1; start web#0(New)"},
		{"rt-42 own policy Never: no second run", `
			container web
			container job policy=Never
			sandbox s0 notready
			has web#0 exited=1 ran=-900..-800
			has job#0 exited=1 ran=-900..-800`,
			"killpod(SandboxChanged); sandbox 1; start web#1(NewSandbox)"},
		{"rt-43 all succeeded, the sandbox is gone", `
			pod OnFailure
			container job
			sandbox s0 notready
			has job#0 exited=0`,
			"nothing"},
		{"rt-43 all succeeded, a sidecar still runs", `
			pod OnFailure
			init proxy policy=Always
			container job
			sandbox s0 notready
			has proxy#0 running
			has job#0 exited=0`,
			"killpod(SandboxChanged)"},
		{"rt-44 only the first init container", `
			init setup
			init migrate
			container web
			sandbox s0 notready
			has setup#0 exited=0 ran=-900..-800
			has migrate#0 exited=0 ran=-900..-800
			has web#0 exited=137 ran=-900..-800`,
			"killpod(SandboxChanged); sandbox 1; start setup#1(NewSandbox)"},
		{"rt-64 a failed init container keeps the pod down", `
			pod Always
			init setup policy=Never
			container web
			sandbox s0 notready
			has setup#0 exited=1`,
			"nothing"},
		{"containers without any sandbox", `
			container web
			has web#0 running in=gone`,
			"killpod(SandboxChanged); sandbox 0; start web#1(NewSandbox)"},
		{"a pod without containers gets no sandbox", `pod Always`, "nothing"},
	})
}

func TestANewSandboxHasAReasonAndAnAttempt(t *testing.T) { // rt-26, spec 4.4
	p := newModel(t, `
		container web
		sandbox s0 attempt=3 notready`).plan()
	assert.True(t, p.KillPod && p.CreateSandbox)
	assert.Equal(t, uint32(4), p.Attempt)
	assert.Equal(t, "sandbox s0 is not ready", p.Changed, "the reason for the event SandboxChanged")

	p = newModel(t, `container web`).plan()
	assert.Empty(t, p.Changed, "the first sandbox is no change")
}

func TestAContainerThatHasTerminatedAndWasRemovedHasRun(t *testing.T) { // rt-41
	s := newModel(t, `
		pod Never
		container web
		container log
		sandbox s0 notready
		has log#0 created`)
	assert.Equal(t, "killpod(SandboxChanged); sandbox 1; start web#0(New); start log#1(NewSandbox)", brief(s.plan()))
	in := s.input()
	in.History.Terminated = map[string]int32{"web": 0}
	assert.Equal(t, "nothing", brief(plan.Compute(in)))
}
