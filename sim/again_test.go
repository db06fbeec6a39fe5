package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

// A pod vanishes and is wanted again under its UID while the sink loses answers:
// the last word on the first must not reach the second, which a new agent would
// take for its own (st-66, st-67). Seed 5112 has found it.
func TestTheLastWordOnAPodDoesNotReachTheOneAfterIt(t *testing.T) {
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
