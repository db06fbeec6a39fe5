package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/replay"
)

func TestSeedsX(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cfg := nodeConfig{latency: []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond}[seed%4], seed: seed}
			if seed%3 == 1 {
				cfg.errors = 40
			}
			r := open(t, recordNode(t, cfg, busy))
			result, err := replay.Run(t.Context(), r, replay.Options{})
			require.NoError(t, err)
			if result.Divergence != nil {
				assert.Fail(t, "diverged", "%+v %v", cfg, result.Divergence)
			}
			t.Logf("%v: compared %d, unrecorded %d", result.Until, result.Compared, result.Unrecorded)
		})
	}
}
