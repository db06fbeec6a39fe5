package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

// A pod vanishes and is added again with its UID while the sink loses responses:
// the last word on the first must not reach the second, which a new agent would
// take for its own (st-66, st-67). Seed 5112 has found it.
func TestTheLastStatusOfAPodIsNotReportedForItsSuccessor(t *testing.T) {
	for name, static := range map[string]string{"of the API": "", "static": " static"} {
		t.Run(name, func(t *testing.T) {
			schedule, err := sim.Parse(strings.ReplaceAll(`
				0s add pod-1STATIC main:c1=run
				0s fault sink kind=lost for=1.5s
				1ms vanish pod-1
				7ms add pod-1STATIC main:c1=run
				1.5s kill down=0s`, "STATIC", static))
			require.NoError(t, err)
			for seed := range uint64(20) {
				assert.Empty(t, runSeed(t, sim.Config{Seed: seed, Schedule: schedule}).Violations, "seed %d", seed)
			}
			assert.Empty(t, runSeed(t, sim.Config{Seed: 5112, Schedule: schedule}).Violations)
		})
	}
}

// An operator removes all of a pod of which one container has exited for good. The
// runtime in memory forgets that and begins it anew: its end stands, and what is
// said of the others goes on (st-50). Seeds 1632 and 2240 have found it.
func TestAContainerThatMayNotComeBackDoesNotFreezeTheStatus(t *testing.T) {
	schedule, err := sim.Parse(`
		0s add web policy=OnFailure main:c0=exit=0@2s main:c1=run
		10s remove web
		20s exit web/c1 code=1`)
	require.NoError(t, err)
	report := runSeed(t, sim.Config{Schedule: schedule})
	assert.Empty(t, report.Violations)
	var last *sim.Entry
	for i := range report.Trace {
		if report.Trace[i].Kind == sim.StatusUpdated {
			last = &report.Trace[i]
		}
	}
	require.NotNil(t, last)
	require.Len(t, last.Status.ContainerStatuses, 2)
	assert.NotNil(t, last.Status.ContainerStatuses[0].State.Terminated)
	assert.NotNil(t, last.Status.ContainerStatuses[1].State.Running)
	assert.NotNil(t, last.Status.ContainerStatuses[1].LastTerminationState.Terminated)
}
