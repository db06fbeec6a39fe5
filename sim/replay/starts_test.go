package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// Pods waited for their turns in the recording; the replayed agent has no limit.
func TestStartsWaitForTheirTurns(t *testing.T) {
	cfg := nodeConfig{latency: 20 * time.Millisecond, seed: 1, adjust: adjusting(func(c *cri.Config) { c.Calls.Starts = 1 })}
	r := open(t, recordNode(t, cfg, func(n node) {
		var pods []*v1.Pod
		for i := range 12 {
			pods = append(pods, pod(fmt.Sprintf("web-%d", i), container("main", "slow")))
		}
		n.source.Set(pods...)
		time.Sleep(3 * time.Minute)
	}))
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
	assert.Greater(t, result.Compared, 36)
}
