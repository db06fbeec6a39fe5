package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// planted are, for each invariant, records that violate it.
var planted = map[string]func(p *tape){
	"ready-implies-running": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning, has(v1.PodReady, v1.ConditionTrue, 1), has(v1.ContainersReady, v1.ConditionTrue, 1), with(exited("a", 1)))
	},
	"ready-implies-started": func(p *tape) {
		p.step("0s add web main:c=started=5s")
		c := running("a")
		c.Started, c.Ready = new(false), true
		p.status(v1.PodRunning, with(c))
	},
	"initializing-is-pending": func(p *tape) {
		p.step("0s add web init:i=exit=0@1s main:c=run")
		p.status(v1.PodRunning, has(v1.PodInitialized, v1.ConditionFalse, 1))
	},
	"phase-never-regresses": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning)
		p.status(v1.PodPending)
	},
	"start-time-stable": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning)
		p.status(v1.PodRunning, func(s *v1.PodStatus) { s.StartTime = &metav1.Time{Time: time.Unix(1001, 0)} })
	},
	"transition-time": func(p *tape) {
		p.step("0s add web main:c=run")
		p.wait(10 * time.Second)
		p.status(v1.PodRunning, has(v1.PodInitialized, v1.ConditionTrue, 1))
		p.status(v1.PodRunning, has(v1.PodInitialized, v1.ConditionTrue, 2))
	},
	"restart-count-of-instance": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		c := running("a")
		c.RestartCount = 1
		p.status(v1.PodRunning, with(c))
	},
	"exit-reported-once": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning, with(exited("a", 1)))
		p.status(v1.PodRunning, with(exited("a", 2)))
	},
	"succeeded-means-success": func(p *tape) {
		p.step("0s add web policy=OnFailure main:c=unhealthy=1s clean:c")
		p.runs("c", "a", 0)
		p.probe("a", "Liveness", 1)
		p.container("c", "a", 0, "exited", stopped)
		p.status(v1.PodSucceeded)
	},
	"completed-before-deadline": func(p *tape) {
		p.step("0s add web policy=Never deadline=10 main:c=exit=0@1s")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		p.status(v1.PodFailed, with(exited("a", 0)), func(s *v1.PodStatus) {
			s.Reason = "DeadlineExceeded"
			s.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.Unix(1008, 0) // it was started at 1000
		})
	},
	"failed-means-failure": func(p *tape) {
		p.step("0s add web policy=Never main:c=exit=0@1s")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		p.status(v1.PodFailed)
	},
	"observed-generation-sane": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning, func(s *v1.PodStatus) { s.ObservedGeneration = 7 })
	},
	"hook-before-running": func(p *tape) {
		p.step("0s add web main:c=run hook:c=5s")
		p.runs("c", "a", 0)
		p.status(v1.PodRunning, with(running("a")))
	},
	"deadline-enforced": func(p *tape) {
		p.step("0s add web deadline=5 grace=2 main:c=run")
		p.status(v1.PodRunning)
		p.wait(time.Minute)
		p.mark(markQuiet)
	},
	"deletion-in-time": func(p *tape) {
		p.step("0s add web grace=2 main:c=run")
		p.deleting(2)
		p.wait(time.Minute)
		p.mark(markQuiet)
	},
	"no-stuck-pod": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.status(v1.PodPending)
		p.settle()
	},
	"terminal-when-done": func(p *tape) {
		p.step("0s add web policy=Never init:i=exit=0@1s,reason=OOMKilled main:c=run")
		p.runs("i", "a", 0)
		p.container("i", "a", 0, "exited", func(c *Change) { c.Reason = "OOMKilled" })
		p.status(v1.PodPending)
		p.settle()
	},
	"observed-generation-catches-up": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.status(v1.PodRunning, with(running("a")))
		p.version(func(pod *v1.Pod) { pod.Generation++ })
		p.settle()
	},
	"grace-period-given": func(p *tape) {
		p.step("0s add web grace=30 main:c=ignoreTERM")
		p.runs("c", "a", 0)
		p.deleting(30)
		p.wait(2 * time.Second)
		p.container("c", "a", 0, "exited", code(137), stopped)
	},
	"grace-period-not-exceeded": func(p *tape) {
		p.step("0s add web grace=5 main:c=run")
		p.runs("c", "a", 0)
		p.deleting(5)
		p.wait(3 * time.Second)
		p.call(Call{Method: "StopContainer", Container: "c", ID: "a", Timeout: 30})
	},
	"no-start-while-deleting": func(p *tape) {
		p.step("0s add web grace=30 main:c=run")
		p.deleting(30)
		p.wait(20 * time.Second)
		p.runs("c", "a", 0)
	},
	"ephemeral-runs-once": func(p *tape) {
		p.step("0s add web main:c=run")
		p.version(func(pod *v1.Pod) {
			pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
		})
		p.runs("debug", "a", 0)
		p.container("debug", "a", 0, "exited")
		p.runs("debug", "b", 1)
	},
	"restart-has-back-off": func(p *tape) {
		p.step("0s add web policy=OnFailure init:i=exit=0@1s,reason=OOMKilled main:c=run")
		for n, id := range []string{"a", "b", "c", "d"} {
			p.runs("i", id, uint32(n))
			p.wait(time.Second)
			p.container("i", id, uint32(n), "exited", func(c *Change) { c.Reason = "OOMKilled" })
		}
	},
	"kubelet-keeps-running": func(p *tape) {
		p.wait(time.Second)
		p.add(Record{Agent: &Agent{1, "exited"}})
	},
	"no-orphans": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.gone()
		p.wait(time.Minute)
		p.mark(markEnded)
	},

	// Those of package sim.
	"one-live-instance": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.runs("c", "b", 1)
	},
	"one-ready-sandbox": func(p *tape) {
		p.step("0s add web main:c=run")
		p.sandbox("s", "ready")
		p.sandbox("s2", "ready")
	},
	"restart-policy": func(p *tape) {
		p.step("0s add web policy=Never main:c=exit=0@1s")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		p.wait(time.Minute)
		p.runs("c", "b", 1)
	},
	"init-order": func(p *tape) {
		p.step("0s add web init:i=exit=0@1s main:c=run")
		p.runs("c", "a", 0)
	},
	"back-off": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		for n, id := range []string{"a", "b", "c"} {
			p.runs("c", id, uint32(n))
			p.wait(time.Second)
			p.container("c", id, uint32(n), "exited", code(1))
			p.wait(2 * time.Second)
		}
	},
	"terminal-phase-final": func(p *tape) {
		p.step("0s add web policy=Never main:c=exit=0@1s")
		p.status(v1.PodFailed)
		p.status(v1.PodRunning)
	},
	"reported-restart-count": func(p *tape) {
		p.step("0s add web main:c=run")
		c := running("a")
		c.RestartCount = 2
		p.status(v1.PodRunning, with(c))
		c.RestartCount = 1
		p.status(v1.PodRunning, with(c))
	},
	"terminal-means-stopped": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.runs("c", "a", 0)
		p.status(v1.PodFailed)
	},
	"terminal-not-ready": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.status(v1.PodFailed, has(v1.PodReady, v1.ConditionTrue, 1))
	},
	"deleted-after-cleanup": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.deleting(30)
		p.gone()
	},
	"exit-codes-correct": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.status(v1.PodRunning, with(exited("a", 2)))
	},
	"reported-instance-never-older": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(time.Second)
		p.runs("c", "b", 1)
		p.status(v1.PodRunning, with(running("b")))
		p.status(v1.PodRunning, with(exited("a", 1)))
	},
	"restart-count-increases": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.runs("c", "b", 0)
	},
	"finally-deleted": func(p *tape) {
		p.step("0s add web main:c=run")
		p.deleting(1)
		p.settle()
	},
	"finally-running": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodPending)
		p.settle()
	},
	"finally-reported": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.status(v1.PodRunning, with(running("a")))
		p.settle()
	},
	"finally-last-state": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(time.Second)
		p.runs("c", "b", 1)
		p.status(v1.PodRunning, with(running("b")))
		p.settle()
	},
	"terminal-never-restarts": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.call(Call{Method: "RunPodSandbox", ID: "s"})
		p.status(v1.PodFailed)
		p.runs("c", "a", 0)
	},
	"no-status-hot-loop": func(p *tape) {
		p.step("0s add web main:c=run")
		for i := range 40 {
			p.status(v1.PodRunning, func(s *v1.PodStatus) { s.Message = string(rune('a' + i)) })
		}
	},
	"finally-all-restarted": func(p *tape) {
		p.step("0s add web main:c=exit=3@1s//3:RestartAllContainers main:d=run")
		p.runs("d", "d", 0)
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited", code(3))
		p.status(v1.PodRunning)
		p.wait(10 * time.Minute)
		p.settle()
	},
	"back-off-resets": func(p *tape) {
		p.step("0s add web main:c=exit=1@11m")
		p.wait(time.Minute)
		p.runs("c", "a", 0)
		p.wait(11 * time.Minute)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(time.Minute)
		p.runs("c", "b", 1)
	},
	"unhealthy-restarted": func(p *tape) {
		p.step("0s add web grace=1 main:c=unhealthy=1s")
		p.status(v1.PodPending)
		p.wait(time.Minute)
		p.runs("c", "a", 0)
		p.probe("a", "Liveness", 1)
		p.probe("a", "Liveness", 1)
		p.wait(5 * time.Minute)
		p.status(v1.PodRunning)
	},
	"finally-ready": func(p *tape) {
		p.step("0s add web main:c=ready=1s")
		p.runs("c", "a", 0)
		p.probe("a", "Readiness", 0)
		p.status(v1.PodRunning, with(running("a")))
		p.settle()
	},
	"startup-probe-first": func(p *tape) {
		p.step("0s add web main:c=started=5s,ready=1s")
		p.runs("c", "a", 0)
		p.probe("a", "Readiness", 1)
	},
	"no-probe-after-exit": func(p *tape) {
		p.step("0s add web main:c=ready=1s")
		p.wait(time.Minute)
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(20 * time.Second)
		p.probe("a", "Readiness", 1)
	},
	"sidecars-stop-last": func(p *tape) {
		p.step("0s add web grace=30 side:s=run main:c=run")
		p.call(Call{Method: "RunPodSandbox", ID: "s"})
		p.runs("s", "s1", 0)
		p.runs("c", "a", 0)
		p.deleting(30)
		p.container("s", "s1", 0, "exited", code(143), stopped)
	},
}

func TestEachInvariantFindsAPlantedViolation(t *testing.T) {
	for _, inv := range Invariants() {
		t.Run(inv.Name, func(t *testing.T) {
			assert.NotEmpty(t, inv.Description)
			assert.NotEmpty(t, inv.Source)
			plant := planted[inv.Name]
			require.NotNil(t, plant, "no record violates it")
			p := newTape(t)
			plant(p)
			violations, err := check(&Recording{Records: p.records})
			require.NoError(t, err)
			assert.Contains(t, names(violations), inv.Name)
		})
	}
	assert.Len(t, planted, len(Invariants()))
}

// A pod that runs, is deleted and is gone violates nothing.
func TestAnOrdinaryLifeViolatesNothing(t *testing.T) {
	p := newTape(t)
	p.step("0s add web grace=5 init:i=exit=0@1s main:c=ready=1s hook:c=1s")
	p.status(v1.PodPending)
	p.wait(time.Second)
	p.call(Call{Method: "RunPodSandbox", ID: "s"})
	p.sandbox("s", "ready")
	p.runs("i", "i1", 0)
	p.wait(time.Second)
	p.container("i", "i1", 0, "exited")
	p.runs("c", "a", 0)
	p.call(Call{Method: "ExecSync", Container: "c", ID: "a", Command: []string{"hook", "1s"}})
	p.probe("a", "Readiness", 0)
	c := running("a")
	c.Ready = true
	p.status(v1.PodRunning, has(v1.PodReady, v1.ConditionTrue, 1), has(v1.ContainersReady, v1.ConditionTrue, 1), with(c))
	p.mark(markQuiet)
	p.wait(20 * time.Second)
	p.mark(markSettled)
	p.deleting(5)
	p.wait(time.Second)
	p.container("c", "a", 0, "exited", code(143), stopped)
	p.call(Call{Method: "StopContainer", Container: "c", ID: "a", Timeout: 5, Took: time.Second})
	p.sandbox("s", "not ready")
	p.status(v1.PodFailed, has(v1.PodReady, v1.ConditionFalse, 2), has(v1.ContainersReady, v1.ConditionFalse, 2), with(exited("a", 143)))
	p.gone()
	p.mark(markEnded)
	violations, err := check(&Recording{Records: p.records})
	require.NoError(t, err)
	assert.Empty(t, violations)
}

// Latencies are not checked while faults have an effect, nor on a machine that is too slow.
func TestLatenciesAreNotCheckedWithFaultsOrOnASlowMachine(t *testing.T) {
	for name, disturb := range map[string]func(p *tape){
		"a fault":      func(p *tape) { p.step("0s fault api kind=error for=30s") },
		"a stall":      func(p *tape) { p.mark(markStalled) },
		"no kubelet":   func(p *tape) { p.add(Record{Agent: &Agent{1, "killed"}}) },
		"slow at adds": func(p *tape) { p.wait(slowStart + time.Second) },
	} {
		p := newTape(t)
		p.step("0s add web grace=2 main:c=run")
		disturb(p)
		p.status(v1.PodPending)
		p.deleting(2)
		p.wait(time.Minute)
		p.mark(markQuiet)
		violations, err := check(&Recording{Records: p.records})
		require.NoError(t, err)
		assert.NotContains(t, names(violations), "deletion-in-time", name)
	}
}

func TestASidecarOfACompletedPodIsStoppedBeforeTheDeletion(t *testing.T) {
	for completed, want := range map[bool]int{true: 0, false: 1} {
		p := newTape(t)
		p.step("0s add web policy=Never grace=5 side:s=ignoreTERM main:c=exit=0@1s")
		p.runs("s", "a", 0)
		p.runs("c", "b", 0)
		p.wait(time.Second)
		if completed {
			p.container("c", "b", 0, "exited")
		}
		p.wait(4 * time.Second)
		p.deleting(5)
		p.wait(time.Second)
		p.container("s", "a", 0, "exited", code(137), stopped)
		violations, err := check(&Recording{Records: p.records})
		require.NoError(t, err)
		violations = slices.DeleteFunc(violations, func(v Violation) bool { return v.Invariant != "grace-period-given" })
		assert.Len(t, violations, want)
	}
}

func TestARestartWaitsForTheHookOfAnotherContainer(t *testing.T) {
	for hooked, want := range map[bool]int{false: 0, true: 1} { // the hook has ended at its start
		p := newTape(t)
		p.step("0s add web grace=1 main:c=unhealthy=1s main:d=run hook:d=10m")
		p.status(v1.PodPending)
		p.wait(time.Minute)
		p.runs("c", "a", 0)
		p.runs("d", "b", 0)
		if hooked {
			p.call(Call{Method: "ExecSync", Container: "d", ID: "b", Command: []string{"hook", "10m"}})
		}
		p.probe("a", "Liveness", 1)
		p.probe("a", "Liveness", 1)
		p.wait(5 * time.Minute)
		p.status(v1.PodRunning)
		violations, err := check(&Recording{Records: p.records})
		require.NoError(t, err)
		found := slices.DeleteFunc(violations, func(v Violation) bool { return v.Invariant != "unhealthy-restarted" })
		assert.Len(t, found, want)
	}
}

// A kubelet that starts after the pod is gone knows its grace period only as the runtime does: from its creation.
func TestAKubeletThatHasNotReadTheDeletionUsesTheGracePeriodOfThePod(t *testing.T) {
	for name, tc := range map[string]struct {
		killed bool
		want   int
	}{"it has": {false, 1}, "it was not running": {true, 0}} {
		p := newTape(t)
		p.step("0s add web grace=5 main:c=run")
		p.runs("c", "a", 0)
		p.wait(20 * time.Second)
		if tc.killed {
			p.add(Record{Agent: &Agent{1, "killed"}})
		}
		p.deleting(0)
		p.gone()
		if tc.killed {
			p.wait(3 * time.Second)
			p.add(Record{Agent: &Agent{2, "started"}})
		}
		p.wait(3 * time.Second)
		p.call(Call{Method: "StopContainer", Container: "c", ID: "a", Timeout: 5})
		violations, err := check(&Recording{Records: p.records})
		require.NoError(t, err)
		found := slices.DeleteFunc(violations, func(v Violation) bool { return v.Invariant != "grace-period-not-exceeded" })
		assert.Len(t, found, tc.want, name)
	}
}

// An instance that was never started, because the machine was rebooted meanwhile, has not run.
func TestAContainerThatWasNotStartedMayStartInANewSandbox(t *testing.T) {
	for started, want := range map[bool]int{true: 1, false: 0} {
		p := newTape(t)
		p.step("0s add web policy=Never main:c=exit=0@9s")
		p.container("c", "a", 0, "created")
		if started {
			p.container("c", "a", 0, "running")
			p.container("c", "a", 0, "exited", code(137))
		}
		p.runs("c", "b", 1)
		violations, err := check(&Recording{Records: p.records})
		require.NoError(t, err)
		found := slices.DeleteFunc(violations, func(v Violation) bool { return v.Invariant != "restart-policy" })
		assert.Len(t, found, want)
	}
}
