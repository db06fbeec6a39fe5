package oracle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

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
		fault  string
		want   int
	}{
		"it has":                       {false, "1s fault StopContainer kind=slow delay=1s for=30s", 1},
		"it was not running":           {true, "1s fault StopContainer kind=slow delay=1s for=30s", 0},
		"requests failed before":       {false, "4s fault api kind=hung for=5s", 1},
		"requests fail":                {false, "19s fault api kind=hung for=5s", 0},
		"requests fail after that":     {false, "25s fault api kind=hung for=5s", 1},
		"requests failed a moment ago": {false, "12s fault api kind=hung for=8s", 0},
	} {
		p := newTape(t)
		p.step("0s add web grace=5 main:c=run")
		p.runs("c", "a", 0)
		fault, err := parseStep(tc.fault)
		require.NoError(t, err)
		until := func(at time.Duration) {
			if p.at < fault.At && fault.At < at {
				p.wait(fault.At - p.at)
				p.step(tc.fault)
			}
			p.wait(at - p.at)
		}
		until(20 * time.Second)
		if tc.killed {
			p.add(Record{Agent: &Agent{1, "killed"}})
		}
		p.deleting(0)
		p.gone()
		until(23 * time.Second)
		if tc.killed {
			p.add(Record{Agent: &Agent{2, "started"}})
		}
		until(26 * time.Second)
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

func TestTheFinalStateIsNotCheckedWhileAKubeletMayWait(t *testing.T) {
	for name, tc := range map[string]struct {
		add, fault string
		after      time.Duration
		want       []string
	}{
		"for nothing":                   {"0s add web main:c=run", "1s fault ListContainers kind=error for=5s", 100 * time.Second, []string{"finally-running"}},
		"for a call that hangs":         {"0s add web main:c=run", "1s fault ContainerStatus kind=hung for=5s", 100 * time.Second, nil},
		"for a call that has timed out": {"0s add web main:c=run", "1s fault ContainerStatus kind=hung for=5s", 150 * time.Second, []string{"finally-running"}},
		"for a pull, for ever":          {"0s add web main:c=run", "1s fault PullImage kind=hung for=5s", 150 * time.Second, nil},
		"for the API server":            {"0s add web main:c=run", "1s fault api kind=hung for=5s", 100 * time.Second, []string{"finally-running"}},
		"for a hook":                    {"0s add web main:c=run hook:c=2m", "1s fault ListContainers kind=error for=5s", 100 * time.Second, nil},
		"for a hook that has ended":     {"0s add web main:c=run hook:c=30s", "1s fault ListContainers kind=error for=5s", 100 * time.Second, []string{"finally-reported"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTape(t)
			p.step(tc.add)
			p.step(tc.fault)
			if strings.Contains(tc.add, "hook") {
				p.runs("c", "a", 0)
			}
			p.status(v1.PodPending, with(v1.ContainerStatus{Name: "c"}))
			p.mark(markQuiet)
			p.wait(tc.after)
			p.mark(markSettled)
			violations, err := check(&Recording{Records: p.records})
			require.NoError(t, err)
			found := slices.DeleteFunc(names(violations), func(name string) bool { return !strings.HasPrefix(name, "finally-r") })
			slices.Sort(found)
			assert.Equal(t, tc.want, slices.Compact(found))
		})
	}
}
