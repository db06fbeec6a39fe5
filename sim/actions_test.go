package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

// ran returns the trace of a schedule that violates no invariant.
func ran(t *testing.T, schedule string) []sim.Entry {
	t.Helper()
	s, err := sim.Parse(schedule)
	require.NoError(t, err)
	report := sim.Check(t, sim.Config{Schedule: s})
	require.False(t, t.Failed())
	return report.Trace
}

// of returns the entries of a kind about a pod.
func of(trace []sim.Entry, kind sim.EntryKind, pod string) (out []sim.Entry) {
	for _, e := range trace {
		if e.Kind == kind && e.Pod == pod {
			out = append(out, e)
		}
	}
	return out
}

func TestAFullNodeRefuses(t *testing.T) { // adm-7, adm-13
	trace := ran(t, `
		0s  room pods=1
		1s  add one main:c=run
		2s  add two main:c=run
		10s delete one
		1m  add three main:c=run`)
	statuses := of(trace, sim.StatusUpdated, "two")
	require.NotEmpty(t, statuses)
	last := statuses[len(statuses)-1].Status
	assert.Equal(t, "OutOfpods", last.Reason)
	assert.Equal(t, "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1", last.Message)
	assert.Empty(t, of(trace, sim.Started, "two"))
	assert.Len(t, of(trace, sim.Started, "three"), 1, "there is room again")
}

func TestAnOutageOfTheRuntimeIsReportedByItsHealth(t *testing.T) { // pleg-26
	for _, kind := range []string{"error", "hung"} {
		trace := ran(t, `
			0s add web main:c=run
			1m fault runtime kind=`+kind+` for=8m`)
		asked := of(trace, sim.HealthChecked, "")
		require.Len(t, asked, 2)
		assert.NotEmpty(t, asked[0].Err, kind)
		assert.Empty(t, asked[1].Err, kind)
	}
}

func TestAMachineIsStartedAgain(t *testing.T) {
	trace := ran(t, `
		0s add a main:c=run
		0s add b main:c=run
		1m reboot down=20s`)
	for _, pod := range []string{"a", "b"} {
		exits, starts := of(trace, sim.Exited, pod), of(trace, sim.Started, pod)
		require.Len(t, exits, 1)
		assert.Equal(t, time.Minute, exits[0].At)
		require.Len(t, starts, 2)
		assert.Greater(t, starts[1].At, 80*time.Second)
	}
}

func TestTheAPIRefuses(t *testing.T) {
	trace := ran(t, `
		0s  add web main:c=run
		0s  add brief main:c=run
		5s  fault sink kind=conflict for=20s
		10s exit web/c code=1
		1m  fault sink kind=missing for=20s
		65s vanish brief`)
	var why []string
	for _, e := range trace {
		if e.Kind == sim.Called && e.Err != "" {
			why = append(why, e.Pod+" "+strings.ReplaceAll(e.Err, "\n", ": "))
		}
	}
	assert.Contains(t, why, "web the object has been modified")
}

// inv-12: hints come true for an hour, lists are minutes apart, and then no
// hint comes any more.
func TestHintsThatAreLostAfterLongAreMadeUpFor(t *testing.T) {
	trace := ran(t, `
		0s    add web main:c=run
		20m   exit web/c code=1
		40m   exit web/c code=1
		1h    fault hints kind=lost for=20m
		1h10s exit web/c code=1`)
	var exited, noticed time.Duration
	for _, e := range trace {
		switch {
		case e.Kind == sim.Exited:
			exited, noticed = e.At, 0
		case e.Kind == sim.EventReceived && e.Event.Type == "ContainerDied" && noticed == 0:
			noticed = e.At
		}
	}
	assert.Equal(t, time.Hour+10*time.Second, exited)
	assert.Greater(t, noticed-exited, 10*time.Second, "no event was received")
	assert.Less(t, noticed-exited, 5*time.Minute+time.Second)
}

// A list that shows what was before a pod began lets it begin again; there is one of it in
// the end. Hints that were lost before keep the lists a second apart.
func TestAStaleListIsOvercome(t *testing.T) { // pleg-18
	trace := ran(t, `
		1s  fault hints kind=lost for=15s
		2s  add other main:c=run
		20s fault runtime kind=stale for=4s delay=1s
		22s add web main:c=run`)
	var reported []string
	for _, e := range of(trace, sim.EventReceived, "web") {
		reported = append(reported, string(e.Event.Type))
	}
	assert.Contains(t, reported, "ContainerRemoved", "which it was not")
	assert.Empty(t, of(trace, sim.Removed, "web"))
}
