package replay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/sim/replay"
)

func TestDecisionsAreCompared(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, errors: 20}, busy))
	same, err := replay.Run(t.Context(), r, replay.Options{Decisions: true})
	require.NoError(t, err)
	require.Greater(t, same.Decisions.Recorded, 25)
	for _, d := range same.Decisions.Differences {
		t.Log(d)
	}
	assert.Equal(t, same.Decisions.Recorded, same.Decisions.Equal)
	assert.Equal(t, same.Decisions.Recorded, same.Decisions.Replayed)
	assert.Nil(t, same.Divergence)
	assert.Empty(t, same.Violations)

	other, err := replay.Run(t.Context(), r, replay.Options{Decisions: true, Adjust: adjusting(func(c *cri.Config) { c.Containers.Backoff.Initial = 40 * time.Second })})
	require.NoError(t, err)
	require.NotNil(t, other.Divergence)
	assert.Equal(t, "default/crash", other.Divergence.Pod)
	assert.Contains(t, other.Divergence.Recorded, "Container main, attempt 2")
	assert.Contains(t, other.Divergence.Reason, "later than recorded")
	assert.Less(t, other.Decisions.Equal, other.Decisions.Recorded)
	assert.Equal(t, other.Divergence, other.Decisions.Differences[0])
	assert.Greater(t, other.Until, other.Divergence.At+time.Minute, "it does not end at a difference")
}
