package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A restore continues until all containers of the checkpoint have been started in one sandbox (KEP-5823).
func TestRestore(t *testing.T) {
	check(t, []row{
		{"sidecars and regular containers, without init containers", `
			init setup
			init proxy policy=Always
			container web
			container log
			ephemeral debug
			restore /c`,
			"restore 0 from /c; start proxy#0(Restored); start web#0(Restored); start log#0(Restored)"},
		{"interrupted before the first start", `
			init setup
			init proxy policy=Always
			container web
			restore /c
			sandbox s0
			has proxy#0 created
			has web#0 created`,
			"restoring; resume proxy-0(Created); resume web-0(Created)"},
		{"interrupted after the first start", `
			init setup
			init proxy policy=Always startup
			container web
			restore /c
			sandbox s0
			has proxy#0 running
			has web#0 created
			probed`,
			"restoring; resume web-0(Created)"},
		{"a start failed", `
			init setup
			container web
			container log
			restore /c
			sandbox s0
			has web#0 running
			has log#0 exited=128 unstarted`,
			"killpod(SandboxChanged); restore 1 from /c; start web#1(Restored); start log#1(Restored)"},
		{"a start failed, and the pod was stopped", `
			container web
			container log
			restore /c
			sandbox s0 notready
			has web#0 exited=143 ran=-20..0
			has log#0 exited=128 unstarted`,
			"killpod(SandboxChanged); restore 1 from /c; start web#1(Restored); start log#1(Restored)"},
		{"the runtime has only a part", `
			init setup
			container web
			container log
			restore /c
			sandbox s0
			has web#0 created`,
			"killpod(SandboxChanged); restore 1 from /c; start web#1(Restored); start log#0(Restored)"},
		{"the sandbox ends before the first start", `
			container web
			restore /c
			sandbox s0 notready
			has web#0 created`,
			"killpod(SandboxChanged); restore 1 from /c; start web#1(Restored)"},
		{"the spec changed before the first start", `
			container web image=nginx:2
			restore /c
			sandbox s0
			has web#0 created made=nginx:1`,
			"killpod(SandboxChanged); restore 1 from /c; start web#1(Restored)"},
		{"a container that was restored exits", `
			init setup
			container web
			container log
			restore /c
			sandbox s0
			has web#0 running
			has log#0 exited=1`,
			"start log#1(Exited)"},
		{"a container exits before the next one is started", `
			pod OnFailure
			container web
			container log
			restore /c
			sandbox s0
			has web#0 exited=0
			has log#0 created`,
			"resume log-0(Created)"},
		{"the sandbox ends after all starts", `
			init setup
			container web
			restore /c
			sandbox s0 notready
			has web#0 exited=137`,
			"killpod(SandboxChanged); sandbox 1; start setup#0(New)"},
		{"the sandbox ends after all starts, and another one is created", `
			init setup
			container web
			restore /c
			sandbox s0 notready
			has web#0 exited=137
			sandbox s1 attempt=1`,
			"start setup#0(New)"},
		{"a container has terminated, and the sandbox ends before another one is started", `
			pod OnFailure
			container web
			container log
			restore /c
			sandbox s0 notready
			has web#0 exited=0
			has log#0 created`,
			"killpod(SandboxChanged); sandbox 1; start log#1(NewSandbox)"},
		{"there is no back-off", `
			container web
			container log
			restore /c
			sandbox s0 notready
			has web#3 exited=1 ran=-2..0
			has log#0 created`,
			"killpod(SandboxChanged); restore 1 from /c; start web#4(Restored); start log#1(Restored)"},
		{"a pod that is deleted", `
			pod deleted
			container web
			restore /c`,
			"nothing"},
		{"a pod that is deleted during its restore", `
			pod deleted
			container web
			container log
			restore /c
			sandbox s0
			has web#0 running`,
			"nothing"},
	})
}

func TestTheReasonOfARestore(t *testing.T) {
	p := newModel(t, `
		container web
		container log
		restore /c
		sandbox s0
		has web#0 created`).plan()
	assert.Equal(t, "sandbox s0 has no restored container log that can be started", p.Changed)
	assert.Equal(t, `stop the pod: sandbox s0 has no restored container log that can be started
restore a sandbox and its containers from /c, attempt 1
start container web, restart 1: its process continues from the checkpoint
start container log: its process continues from the checkpoint`, p.String())
}

// A checkpoint that the caller still passes is used once.
func TestACheckpointIsUsedOnce(t *testing.T) {
	s := newModel(t, `
		init setup
		container web
		restore /c`)
	p := checkPlan(t, s)
	require.Equal(t, "/c", p.Restore)
	s.apply(p)
	s.restore = "/c"
	assert.Equal(t, "nothing", brief(checkPlan(t, s)))
	s.exit(s.instance("web-0.2"), 137)
	s.status.Sandboxes[0].State = runtime.SandboxNotReady
	p = checkPlan(t, s)
	assert.Empty(t, p.Restore)
	assert.Equal(t, plan.Init, p.Start[0].Kind)
}
