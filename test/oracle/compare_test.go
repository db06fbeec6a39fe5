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

func TestADifferenceIsThatOfTheKubeletThatViolatesAnInvariant(t *testing.T) {
	run := func(end v1.PodPhase, twice bool) *Recording {
		p := newTape(t)
		p.step("0s add web policy=Never main:c=exit=0@1s")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		if twice {
			p.add(Record{Event: &Event{Pod: "uid-web", Reason: "Killing"}})
		}
		p.status(end)
		p.mark(markSettled)
		p.status(end, func(s *v1.PodStatus) { s.Message = "not compared" })
		return &Recording{Records: p.records}
	}
	good, same, wrong, chatty := run(v1.PodSucceeded, false), run(v1.PodSucceeded, false), run(v1.PodFailed, false), run(v1.PodSucceeded, true)
	for name, tt := range map[string]struct {
		first, second *Recording
		classes       map[string]string
	}{
		"equal":        {good, same, map[string]string{}},
		"second wrong": {good, wrong, map[string]string{"final phase": secondWrong, "phases": secondWrong}},
		"first wrong":  {wrong, good, map[string]string{"final phase": firstWrong, "phases": firstWrong}},
		"both allowed": {good, chatty, map[string]string{"events": bothAllowed}},
		"both wrong":   {wrong, run(v1.PodFailed, true), map[string]string{"events": bothWrong}},
	} {
		differences, err := compareRuns(tt.first, tt.second)
		require.NoError(t, err)
		classes := map[string]string{}
		for _, d := range differences {
			classes[d.Kind] = d.Class
			assert.NotEmpty(t, d.Why, name)
		}
		assert.Equal(t, tt.classes, classes, name)
	}
}

func TestADeadlineAndACompletionHaveNoOrderWithinTheirResolution(t *testing.T) {
	run := func(phase v1.PodPhase, end int64) *Recording {
		p := newTape(t)
		p.step("0s add web policy=Never deadline=10 main:c=exit=0@10s")
		p.runs("c", "a", 0)
		p.wait(10 * time.Second)
		p.container("c", "a", 0, "exited")
		p.status(phase, with(exited("a", 0)), func(s *v1.PodStatus) {
			if s.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.Unix(end, 0); phase == v1.PodFailed {
				s.Reason = "DeadlineExceeded"
			}
		})
		p.mark(markSettled)
		return &Recording{Records: p.records}
	}
	for end, class := range map[int64]string{1009: bothAllowed, 1011: bothAllowed, 1008: firstWrong, 1012: unclassified} { // it was started at 1000
		differences, err := compareRuns(run(v1.PodFailed, end), run(v1.PodSucceeded, end))
		require.NoError(t, err)
		i := slices.IndexFunc(differences, func(d Difference) bool { return d.Kind == "final phase" })
		require.GreaterOrEqual(t, i, 0)
		assert.Equal(t, class, differences[i].Class, end)
	}
}

func TestTheLastStatusOfAForciblyDeletedPodIsAny(t *testing.T) {
	run := func(phase v1.PodPhase, grace int64) *Recording {
		p := newTape(t)
		p.step("0s add web policy=Never main:c=exit=0@10s")
		p.runs("c", "a", 0)
		p.status(v1.PodRunning)
		p.wait(10 * time.Second)
		p.container("c", "a", 0, "exited")
		p.status(phase)
		p.deleting(grace)
		p.add(Record{Pod: &Version{Pod: p.pods["web"].DeepCopy(), Deleted: true}})
		return &Recording{Records: p.records}
	}
	for grace, class := range map[int64]string{0: bothAllowed, 5: unclassified} {
		differences, err := compareRuns(run(v1.PodRunning, grace), run(v1.PodSucceeded, grace))
		require.NoError(t, err)
		i := slices.IndexFunc(differences, func(d Difference) bool { return d.Kind == "final phase" })
		require.GreaterOrEqual(t, i, 0)
		assert.Equal(t, class, differences[i].Class, differences[i].Why)
	}
}

func TestWhatAKubeletCannotKnowOrFinishIsAllowed(t *testing.T) {
	run := func(phase v1.PodPhase, add, step string, deleted bool) *Recording {
		p := newTape(t)
		p.step(add)
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		p.step(step)
		if deleted {
			p.deleting(5)
		}
		p.status(phase)
		if deleted {
			p.gone()
		}
		p.mark(markSettled)
		return &Recording{Records: p.records}
	}
	const add, slow = "0s add web policy=Never main:c=exit=0@1s", "1s fault ListContainers kind=slow delay=1s for=5s"
	for name, tt := range map[string]struct {
		add, step string
		deleted   bool
		first     v1.PodPhase
		class     string
	}{
		"nothing":                {add, slow, false, v1.PodRunning, unclassified},
		"removed":                {add, "1s remove web", false, v1.PodFailed, bothAllowed},
		"another was removed":    {add, "1s remove other", false, v1.PodRunning, unclassified},
		"stale lists":            {add, "1s fault ListContainers kind=stale delay=1s for=5s", false, v1.PodRunning, bothAllowed},
		"a call hangs":           {add, "1s fault ContainerStatus kind=hung for=5s", false, v1.PodRunning, bothAllowed},
		"a request hangs":        {add, "1s fault api kind=hung for=5s", false, v1.PodRunning, unclassified},
		"deleted":                {add, slow, true, v1.PodFailed, unclassified},
		"deleted, with deadline": {"0s add web policy=Never deadline=40 main:c=exit=0@1s", slow, true, v1.PodFailed, bothAllowed},
	} {
		differences, err := compareRuns(run(tt.first, tt.add, tt.step, tt.deleted), run(v1.PodSucceeded, tt.add, tt.step, tt.deleted))
		require.NoError(t, err)
		i := slices.IndexFunc(differences, func(d Difference) bool { return d.Kind == "final phase" })
		require.GreaterOrEqual(t, i, 0, name)
		assert.Equal(t, tt.class, differences[i].Class, name)
	}
}

func TestADifferenceWithoutAReasonIsNotClassified(t *testing.T) {
	run := func(phase v1.PodPhase) *Recording {
		p := newTape(t)
		p.step("0s add web policy=Never main:c=run")
		p.runs("c", "a", 0)
		p.status(phase)
		p.mark(markSettled)
		return &Recording{Records: p.records}
	}
	differences, err := compareRuns(run(v1.PodPending), run(v1.PodRunning))
	require.NoError(t, err)
	require.NotEmpty(t, differences)
	assert.Equal(t, Difference{Pod: "web", Kind: "final phase", First: "Pending", Second: "Running", Class: unclassified}, differences[0])
}
