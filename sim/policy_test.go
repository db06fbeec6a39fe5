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

// What would a node be like whose back-off begins with a second instead of ten?
// A policy of one's own is simulated by a Machine of one's own, against the same
// schedule, and what comes of it is counted in the trace. Laws that the policy is
// meant to break are known by their names.
func TestAnotherBackOffIsSimulated(t *testing.T) {
	schedule, err := sim.Parse(`
		0s  add web main:app=exit-1-2s_times-6
		30s fault runtime kind=error percent=30 for=1m
		50s kill down=5s
		2m  reboot down=20s
	`)
	require.NoError(t, err)

	restarts, broken, ready := map[string]int{}, map[string][]string{}, map[string]time.Duration{}
	for name, backoff := range map[string]time.Duration{"kubelet": 10 * time.Second, "hasty": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			report, err := sim.Run(t.Context(), sim.Config{
				Schedule: schedule,
				Machine:  sim.MemoryOf(&runtimetest.Runtime{Backoff: backoff}),
				Each: func(e sim.Entry) { // a law of one's own: it would look here
					if e.Kind == sim.Started {
						restarts[name]++
						ready[name] = e.At
					}
				},
			})
			require.NoError(t, err)
			for _, v := range report.Violations {
				broken[name] = append(broken[name], v.Law)
			}
		})
	}
	t.Logf("starts %v, the last one at %v; laws broken: %v", restarts, ready, broken)
	assert.Empty(t, broken["kubelet"])
	assert.Contains(t, broken["hasty"], "back-off", "which is the point")
	assert.Less(t, ready["hasty"], ready["kubelet"], "it is up sooner")
}
