package replay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// A garbage collection that was requested a moment later removes a container a period later.
func TestGarbageIsRemovedWithinAPeriod(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, busy))
	crashed := map[string]bool{} // containers of a pod that is not deleted
	for f := range r.Frames() {
		if f.Call != nil && f.Call.Method == "CreateContainer" && strings.Contains(string(f.Call.Request), "uid-crash") {
			var answer struct{ ContainerID string }
			require.NoError(t, json.Unmarshal(f.Call.Answer, &answer))
			crashed[answer.ContainerID] = true
		}
	}
	for later, diverges := range map[time.Duration]bool{0: false, 40 * time.Second: false, 90 * time.Second: true} {
		moved := 0
		changed := edited(t, r, func(f *record.Frame) {
			if f.Call != nil && f.Call.Method == "RemoveContainer" && f.At < 2*time.Minute && crashed[containerID(t, *f)] {
				f.At += later
				moved++
			}
		})
		require.NotZero(t, moved)
		result, err := replay.Run(t.Context(), changed, replay.Options{})
		require.NoError(t, err)
		assert.Equal(t, diverges, result.Divergence != nil, "%v later: %v", later, result.Divergence)
		if diverges && result.Divergence != nil {
			assert.Contains(t, result.Divergence.What, "removal of ")
		}
	}
}

// A sandbox that is stopped again before it is removed, or not, is the same.
func TestRepeatedStopsOfASandboxAreNotCompared(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, busy))
	stopped, dropped := map[string]bool{}, 0
	frames := slices.DeleteFunc(slices.Collect(r.Frames()), func(f record.Frame) bool {
		if f.Call == nil || f.Call.Method != "StopPodSandbox" || f.Call.Error != nil {
			return false
		}
		again := stopped[string(f.Call.Request)]
		stopped[string(f.Call.Request)] = true
		if again {
			dropped++
		}
		return again
	})
	require.NotZero(t, dropped)
	without, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	result, err := replay.Run(t.Context(), without, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}
