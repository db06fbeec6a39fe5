package replay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/replay"
)

func TestAnUnmodifiedAgentReplaysItsRecording(t *testing.T) {
	for name, cfg := range map[string]nodeConfig{
		"no latency":   {},
		"milliseconds": {latency: 20 * time.Millisecond, seed: 1},
		"slow":         {latency: 700 * time.Millisecond, seed: 2},
		"errors":       {latency: 20 * time.Millisecond, seed: 3, errors: 30},
	} {
		t.Run(name, func(t *testing.T) {
			dir := recordNode(t, cfg, busy)
			r := open(t, dir)
			require.NoError(t, r.Damage)
			result, err := replay.Run(t.Context(), r, replay.Options{})
			require.NoError(t, err)
			assert.Nil(t, result.Divergence, "%v", result.Divergence)
			assert.Greater(t, result.Compared, 50)
			t.Logf("%v: compared %d, unrecorded %d", result.Until, result.Compared, result.Unrecorded)
		})
	}
}
