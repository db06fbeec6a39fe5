package plan_test

import "testing"

// Spec 4.8.
func TestInitContainers(t *testing.T) {
	const old = " ran=-900..-800 "
	check(t, []row{
		{"rt-53 none", `
			container web
			sandbox s0`,
			"start web#0(New)"},
		{"rt-54 a regular container was created: initialised", `
			init setup
			container web
			container log
			sandbox s0
			has web#0 created`,
			"resume web-0(Created); start log#0(New)"},
		{"rt-54 also one that has exited, in this sandbox", `
			init setup
			container web
			sandbox s0
			has web#0 exited=1` + old,
			"start web#1(Exited)"},
		{"rt-54 not one of a former sandbox (a reboot)", `
			init setup
			container web
			sandbox s0 notready
			has setup#0 exited=0` + old + `
			has web#0 exited=255` + old + `
			sandbox s1 attempt=1`,
			"start setup#1(NewSandbox)"},
		{"rt-54 a crashed sidecar does not hold crashed containers up", `
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 exited=1` + old + `
			has web#0 exited=1` + old,
			"start proxy#1(Exited); start web#1(Exited)"},
		{"rt-56 an earlier sidecar that was never created", `
			init proxy policy=Always
			init setup
			container web
			sandbox s0
			has setup#0 running`,
			"start proxy#0(New)"},
		{"rt-56 a sidecar lost after initialisation", `
			init proxy policy=Always
			container web
			sandbox s0
			has web#0 running`,
			"start proxy#0(New)"},
		{"rt-55 the last one with a status determines the progress", `
			pod Never
			init a
			init b
			init c
			container web
			sandbox s0
			has a#0 exited=1
			has b#0 exited=0`,
			"start c#0(New)"},
		{"rt-57 later init containers are left unchanged", `
			init a
			init b
			container web
			sandbox s0
			has a#0 exited=1
			has b#0 running`,
			"nothing"},
		{"rt-58 created: started", `
			init setup
			container web
			sandbox s0
			has setup#0 created`,
			"resume setup-0(Created)"},
		{"rt-58 created from another definition: replaced", `
			init setup
			container web
			sandbox s0
			has setup#0 created made=nginx:0`,
			"start setup#1(Created)"},
		{"rt-59 running: wait", `
			init setup
			container web
			sandbox s0
			has setup#0 running`,
			"nothing"},
		{"rt-59 running with another definition: wait", `
			init setup
			container web
			sandbox s0
			has setup#0 running made=nginx:0`,
			"nothing"},
		{"rt-61 sidecar runs, last: initialised", `
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 running`,
			"start web#0(New)"},
		{"rt-61 sidecar runs: the next one", `
			init proxy policy=Always
			init setup
			container web
			sandbox s0
			has proxy#0 running`,
			"start setup#0(New)"},
		{"rt-62 sidecar of another definition, after initialization", `
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 running made=nginx:0
			has web#0 running`,
			"kill proxy-0(DefinitionChanged); start proxy#1(DefinitionChanged)"},
		{"rt-62 before: the next one waits for the new one", `
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 running made=nginx:0`,
			"kill proxy-0(DefinitionChanged); start proxy#1(DefinitionChanged)"},
		{"rt-63 sidecar exited: started, even in a Never pod", `
			pod Never
			init proxy policy=Always
			init setup
			container web
			sandbox s0
			has proxy#0 exited=0` + old + `
			has setup#0 running`,
			"start proxy#1(Exited)"},
		{"rt-64 failed: again", `
			init setup
			container web
			sandbox s0
			has setup#0 exited=1` + old,
			"start setup#1(Exited)"},
		{"rt-64 failed in a Never pod: over", `
			pod Never
			init proxy policy=Always
			init setup
			container web
			ephemeral debug
			sandbox s0
			has proxy#0 running
			has setup#0 exited=1` + old,
			"killpod(InitFailed)"},
		{"rt-64 own rule", `
			pod Never
			init setup policy=Never rule=Restart:In:3
			container web
			sandbox s0
			has setup#0 exited=3` + old,
			"start setup#1(Exited)"},
		{"rt-64 out of memory is a failure with any code", `
			pod OnFailure
			init setup
			container web
			sandbox s0
			has setup#0 exited=0 reason=OOMKilled` + old,
			"start setup#1(Exited)"},
		{"rt-65 done: the next one", `
			init a
			init b
			container web
			sandbox s0
			has a#0 exited=0`,
			"start b#0(New)"},
		{"rt-65 the last is done: initialised", `
			init a
			init b
			container web
			container log
			sandbox s0
			has a#0 exited=0
			has b#0 exited=0`,
			"start web#0(New); start log#0(New)"},
		{"rt-66 unknown sidecar", `
			pod Never
			init proxy policy=Always
			container web
			sandbox s0
			has proxy#0 unknown
			has web#0 running`,
			"kill proxy-0(UnknownState); start proxy#1(UnknownState)"},
		{"rt-66 unknown in a Never pod: over", `
			pod Never
			init setup
			container web
			sandbox s0
			has setup#0 unknown`,
			"killpod(InitFailed)"},
		{"rt-66 unknown, rules are not asked", `
			pod Always
			init setup policy=Never rule=Restart:In:137
			container web
			sandbox s0
			has setup#0 unknown`,
			"killpod(InitFailed)"},
		{"rt-66 unknown", `
			pod OnFailure
			init setup
			container web
			sandbox s0
			has setup#0 unknown`,
			"kill setup-0(UnknownState); start setup#1(UnknownState)"},
		{"rt-67 no status", `
			init a
			init b
			container web
			sandbox s0`,
			"start a#0(New)"},
		{"rt-68 in the order of the spec", `
			init a policy=Always
			init b policy=Always
			init c
			container web
			sandbox s0
			has a#0 unknown
			has b#0 running made=nginx:0
			has c#0 running`,
			"kill a-0(UnknownState); kill b-0(DefinitionChanged); start a#1(UnknownState); start b#1(DefinitionChanged)"},
		{"rt-69 missing earlier ones are not run again", `
			init a
			init b
			container web
			sandbox s0
			has b#0 exited=0`,
			"start web#0(New)"},
		{"rt-46 while init is not done, nothing regular is started", `
			init setup
			container web
			container log
			sandbox s0
			has setup#0 running`,
			"nothing"},
		{"rt-46 nor if init asks for the end", `
			pod Never
			init setup
			container web
			sandbox s0
			has setup#0 exited=1` + old,
			"killpod(InitFailed)"},
		{"a finished one of a former sandbox is not finished", `
			init a
			init b
			container web
			sandbox s0 notready
			has a#0 exited=0` + old + `
			has b#0 exited=0` + old + `
			sandbox s1 attempt=1
			has a#1 exited=0` + old,
			"start b#1(NewSandbox)"},
	})
}
