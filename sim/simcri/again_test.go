package simcri_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/simcri"
)

// The engine has it on record that a container has exited for good: that an
// operator removes it does not start it again (rt-42, st-50), also for the agent
// after it.
func TestATerminatedContainerThatIsRemovedDoesNotStartAgain(t *testing.T) {
	schedule, err := sim.Parse(`
		0s add web policy=OnFailure main:c0=exit=0@2s main:c1=run
		8s kill down=1s
		20s remove web`)
	require.NoError(t, err)
	dir := memoryDir(t)
	var report *sim.Report
	synctest.Test(t, func(t *testing.T) {
		report, err = sim.Run(t.Context(), sim.Config{Schedule: schedule, Machine: simcri.MachineIn(dir)})
		require.NoError(t, err)
	})
	assert.Empty(t, report.Violations)
	starts := map[string]int{}
	for _, e := range report.Trace {
		if e.Kind == sim.Started {
			starts[e.Container.Name]++
		}
	}
	assert.Equal(t, map[string]int{"c0": 1, "c1": 2}, starts)
}
