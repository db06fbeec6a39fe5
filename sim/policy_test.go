package sim_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/sim"
)

// The effect of an initial back-off of one second instead of ten: a custom Machine
// simulates the other policy with the same schedule, and the trace shows its effect.
// Invariants that the policy is meant to violate are recognized by their names.
func TestAnotherBackOffIsSimulated(t *testing.T) {
	schedule, err := sim.Parse(`
		0s  add web main:app=exit=1@2s,crashes=6
		30s fault runtime kind=error percent=30 for=1m
		50s kill down=5s
		2m  reboot down=20s
	`)
	require.NoError(t, err)

	restarts, violated, ready := map[string]int{}, map[string][]string{}, map[string]time.Duration{}
	for name, backoff := range map[string]time.Duration{"kubelet": 10 * time.Second, "hasty": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			report, err := sim.Run(t.Context(), sim.Config{
				Schedule: schedule,
				Machine:  sim.MemoryOf(&runtimetest.Runtime{Backoff: backoff}),
				OnEntry: func(e sim.Entry) { // a custom invariant could be checked here
					if e.Kind == sim.Started {
						restarts[name]++
						ready[name] = e.At
					}
				},
			})
			require.NoError(t, err)
			for _, v := range report.Violations {
				violated[name] = append(violated[name], v.Invariant)
			}
		})
	}
	t.Logf("starts %v, the last one at %v; violated: %v", restarts, ready, violated)
	assert.Empty(t, violated["kubelet"])
	assert.Contains(t, violated["hasty"], "back-off", "the policy is meant to violate it")
	assert.Less(t, ready["hasty"], ready["kubelet"], "it is running earlier")
}
