package simcri_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/simcri"
)

// Defects that the oracle found on the node of this repository (docs/oracle.md), as schedules.
func TestHooksOfTheOracle(t *testing.T) {
	for name, text := range map[string]string{
		"a new sandbox": `
			0s add web grace=2 main:a=run main:b=run hook:a=20s hook:b=20s
			1m crash web`,
		"a deletion": `
			0s  add web grace=5 main:c=ignoreTERM hook:c=20s
			10s delete web`,
		"a restart of the agent": `
			0s add web grace=2 main:c=run hook:c=20s
			5s kill down=3s`,
		"a replaced container": `
			0s add web grace=2 main:c=run hook:c=20s
			1m change web/c does=run,version=2`,
		"a replaced container, and the hook of another one": `
			0s    add web grace=2 main:a=run main:b=run main:c=run hook:b=20s hook:c=20s
			2m    exit web/c code=1
			2m5s  change web/a does=run,version=2
			2m10s exit web/b code=1`,
		"a deadline during the hook of a container that has replaced another": `
			0s    add web grace=5 deadline=8 main:c=run hook:c=4s
			7500ms crash web`,
	} {
		t.Run(name, func(t *testing.T) {
			schedule, err := sim.Parse(text)
			require.NoError(t, err)
			sim.Check(t, sim.Config{Schedule: schedule, Machine: simcri.MachineIn(memoryDir(t))})
		})
	}
}
