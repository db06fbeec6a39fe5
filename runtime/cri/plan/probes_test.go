package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// rt-37, rt-48, rt-49, rt-108, prober-66, prober-71.
func TestProbesOfRegularContainers(t *testing.T) {
	const old = " ran=-900..-800 "
	check(t, []row{
		{"rt-48 liveness failed", `
			container web liveness
			sandbox s0
			has web#0 running dead`,
			"kill web-0(LivenessProbe); start web#1(LivenessProbe)"},
		{"rt-48 startup failed", `
			container web startup
			sandbox s0
			has web#0 running stuck`,
			"kill web-0(StartupProbe); start web#1(StartupProbe)"},
		{"rt-48 no result, no restart", `
			container web startup liveness
			sandbox s0
			has web#0 running
			probed`,
			"nothing"},
		{"rt-48 all probes succeeded", `
			container web startup liveness
			sandbox s0
			has web#0 running live started`,
			"nothing"},
		{"rt-48 definition before liveness", `
			pod Never
			container web liveness
			sandbox s0
			has web#0 running dead made=nginx:0`,
			"kill web-0(DefinitionChanged); start web#1(DefinitionChanged)"},
		{"rt-48 liveness before startup", `
			container web liveness=5 startup=6
			sandbox s0
			has web#0 running dead stuck`,
			"kill web-0(LivenessProbe) in 5s; start web#1(LivenessProbe)"},
		{"rt-48 startup before resize", `
			container web startup cpu=2 onresize=cpu
			sandbox s0
			has web#0 running stuck cpu=1`,
			"kill web-0(StartupProbe); start web#1(StartupProbe)"},
		{"rt-37 policy Never: killed and not restarted", `
			pod Never
			container web liveness
			container log
			sandbox s0
			has web#0 running dead
			has log#0 running`,
			"kill web-0(LivenessProbe)"},
		{"rt-37 OnFailure: restarted", `
			pod OnFailure
			container web startup
			sandbox s0
			has web#0 running stuck`,
			"kill web-0(StartupProbe); start web#1(StartupProbe)"},
		{"rt-37 the container's own policy takes precedence", `
			pod Never
			container web liveness policy=OnFailure
			container log liveness policy=Never
			container app
			sandbox s0
			has web#0 running dead
			has log#0 running dead
			has app#0 running`,
			"kill web-0(LivenessProbe); kill log-0(LivenessProbe); start web#1(LivenessProbe)"},
		{"rt-37 an unknown policy of its own is none", `
			pod Never
			container web liveness policy=Sometimes
			container app
			sandbox s0
			has web#0 running dead
			has app#0 running`,
			"kill web-0(LivenessProbe)"},
		{"rt-37 rules are not asked", `
			pod Never
			container web liveness policy=Never rule=Restart:NotIn:0
			container app
			sandbox s0
			has web#0 running dead
			has app#0 running`,
			"kill web-0(LivenessProbe)"},
		{"rt-50 the last one is stopped by itself before the pod", `
			pod Never
			init proxy policy=Always
			container web liveness=7
			ephemeral debug
			sandbox s0
			has proxy#0 exited=1` + old + `
			has web#0 running dead`,
			"kill web-0(LivenessProbe) in 7s"},
		{"rt-97 an exit before delays the restart", `
			container web liveness
			sandbox s0
			has web#1 exited=1 ran=-5..-1
			has web#2 running dead`,
			"kill web-2(LivenessProbe); start web#3(LivenessProbe) at 9"},
		{"rt-97 the first such restart is immediate", `
			container web liveness
			sandbox s0
			has web#7 running dead`,
			"kill web-7(LivenessProbe); start web#8(LivenessProbe)"},
		{"rt-108 the probe's own grace period", `
			container web liveness=15 startup=600
			container log liveness=15 startup=600
			sandbox s0
			has web#0 running dead
			has log#0 running stuck`,
			"kill web-0(LivenessProbe) in 15s; kill log-0(StartupProbe) in 600s; start web#1(LivenessProbe); start log#1(StartupProbe)"},
		{"lq-12 of two copies the healthy one is kept", `
			container web liveness
			sandbox s0
			has web#0 running live
			has web#1 running dead`,
			"kill web-1(Duplicate)"},
		{"the result is of the instance, not of the container", `
			container web liveness
			sandbox s0
			has web#0 exited=1 dead` + old + `
			has web#1 running`,
			"nothing"},
		{"rt-31 a deleted pod is not restarted for it", `
			pod deleted
			container web liveness
			sandbox s0
			has web#0 running dead`,
			"nothing"},
	})
}

// rt-60 … rt-62.
func TestProbesOfSidecars(t *testing.T) {
	check(t, []row{
		{"rt-60 no result yet: the next one waits", `
			init proxy policy=Always startup
			init setup
			container web
			sandbox s0
			has proxy#0 running
			probed`,
			"nothing"},
		{"rt-60 no result yet: the regular ones wait", `
			init proxy policy=Always startup
			container web
			sandbox s0
			has proxy#0 running
			probed`,
			"nothing"},
		{"rt-60 failed", `
			pod Never
			init proxy policy=Always startup=3
			init setup
			container web
			sandbox s0
			has proxy#0 running stuck`,
			"kill proxy-0(StartupProbe) in 3s; start proxy#1(StartupProbe)"},
		{"rt-60 the pod has begun: nothing waits", `
			init proxy policy=Always startup
			container web
			container log
			sandbox s0
			has proxy#0 running
			has log#0 running
			probed`,
			"start web#0(New)"},
		{"rt-61 passed: the next one", `
			init proxy policy=Always startup
			init setup
			container web
			sandbox s0
			has proxy#0 running started`,
			"start setup#0(New)"},
		{"rt-61 passed, last: initialised", `
			init proxy policy=Always startup
			container web
			sandbox s0
			has proxy#0 running started`,
			"start web#0(New)"},
		{"rt-61 without a startup probe it is started when it runs", `
			init proxy policy=Always liveness
			container web
			sandbox s0
			has proxy#0 running
			probed`,
			"start web#0(New)"},
		{"rt-61 no prober: started when it runs", `
			init proxy policy=Always startup
			container web
			sandbox s0
			has proxy#0 running`,
			"start web#0(New)"},
		{"rt-62 definition changed while it starts up", `
			init proxy policy=Always startup
			container web
			sandbox s0
			has proxy#0 running made=nginx:0
			probed`,
			"kill proxy-0(DefinitionChanged); start proxy#1(DefinitionChanged)"},
		{"rt-62 liveness failed, the pod is not restarted", `
			pod Never
			init proxy policy=Always liveness=4
			container web
			sandbox s0
			has proxy#0 running dead
			has web#0 running`,
			"kill proxy-0(LivenessProbe) in 4s; start proxy#1(LivenessProbe)"},
		{"rt-62 no liveness result yet: left alone", `
			init proxy policy=Always startup liveness
			container web
			sandbox s0
			has proxy#0 running started
			has web#0 running`,
			"nothing"},
		{"rt-62 resize last", `
			init proxy policy=Always liveness cpu=2 onresize=cpu
			container web
			sandbox s0
			has proxy#0 running dead cpu=1
			has web#0 running`,
			"kill proxy-0(LivenessProbe); start proxy#1(LivenessProbe)"},
		{"#136969 a crashed or starting one does not delay a restart", `
			init proxy policy=Always startup
			init cache policy=Always startup
			container web
			sandbox s0
			has proxy#0 exited=1 ran=-900..-800
			has cache#0 running
			has web#0 exited=1 ran=-900..-800
			probed`,
			"start proxy#1(Exited); start web#1(Exited)"},
		{"#120247 after a reboot init runs again, without earlier results", `
			init proxy policy=Always startup
			container web
			sandbox s0 notready
			has proxy#0 exited=255 started ran=-900..-800
			has web#0 exited=255 ran=-900..-800
			sandbox s1 attempt=1
			has proxy#1 running`,
			"nothing"},
	})
}

// The exact messages of the event Killing and of waiting containers.
func TestKillMessages(t *testing.T) {
	for _, tc := range []struct{ name, model, want string }{
		{"rt-49 definition", `
			container web
			sandbox s0
			has web#0 running made=nginx:0`, "Container web definition changed, will be restarted"},
		{"rt-49 liveness", `
			container web
			sandbox s0
			has web#0 running dead`, "Container web failed liveness probe, will be restarted"},
		{"rt-49 startup", `
			container web
			sandbox s0
			has web#0 running stuck`, "Container web failed startup probe, will be restarted"},
		{"rt-48 not restarted", `
			pod Never
			container web
			sandbox s0
			has web#0 running dead`, "Container web failed liveness probe"},
		{"al-15 resize", `
			container web cpu=2 onresize=cpu
			sandbox s0
			has web#0 running cpu=1`, "Container web resize requires restart"},
		{"rt-60 sidecar", `
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 running stuck`, "Init container proxy failed startup probe"},
		{"rt-62 sidecar", `
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 running dead`, "Init container proxy failed liveness probe"},
		{"rt-62 sidecar's definition", `
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 running made=nginx:0`, "Init container proxy definition changed"},
		{"al-15 sidecar", `
			init proxy policy=Always cpu=2 onresize=cpu
			container web
			sandbox s0
			has proxy#0 running cpu=1`, "Init container proxy resize requires restart"},
		{"rt-47 unknown", `
			container web
			sandbox s0
			has web#0 unknown`, `Container is in "unknown" state, try killing it before restart`},
		{"rt-66 unknown", `
			init setup
			container web
			sandbox s0
			has setup#0 unknown`, `Init container is in "unknown" state, try killing it before restart`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newModel(t, tc.model).plan()
			if assert.Len(t, p.Kill, 1) {
				assert.Equal(t, tc.want, p.Kill[0].Message)
			}
		})
	}
}

func TestReasonsToWait(t *testing.T) { // rt-46
	for _, tc := range []struct{ model, want string }{
		{"init a startup policy=Always\nsandbox s0\nhas a#0 running\nprobed", "init container a to pass its startup probe"},
		{"init a\nsandbox s0\nhas a#0 running", "init container a to exit"},
		{"init a\nsandbox s0", "the init containers"},
		{"init a startup policy=Always\ncontainer web\nsandbox s0\nhas a#0 running\nhas web#0 running\nprobed", ""},
	} {
		assert.Equal(t, tc.want, newModel(t, tc.model).plan().Waits)
	}
}
