package replay_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// A garbage collection that was requested at another time removes a container up to a period earlier or later.
func TestGarbageIsRemovedWithinAPeriod(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("crash", container("main", "crash")))
		time.Sleep(10 * time.Minute)
	}))
	for period, diverges := range map[time.Duration]bool{5 * time.Second: false, 17 * time.Second: false, time.Minute: false, time.Hour: true} {
		result, err := replay.Run(t.Context(), r, replay.Options{Adjust: adjusting(func(c *podworker.LoopConfig) { c.GarbagePeriod = period })})
		require.NoError(t, err)
		require.Equal(t, diverges, result.Divergence != nil, "each %v: %v", period, result.Divergence)
		if diverges {
			assert.Contains(t, result.Divergence.What, "removal of ")
		}
	}
}

// An event of a removal that the replayed agent makes later does not delay the events of other containers.
func TestAnEventOfALaterRemovalDelaysNoOther(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("crash", container("main", "crash")), pod("web", container("main", "nginx")))
		time.Sleep(62 * time.Second) // garbage is collected after 60 s
		_ = n.fake.Exit("uid-web", "main", 3)
		time.Sleep(time.Minute)
	}))
	result, err := replay.Run(t.Context(), r, replay.Options{Tolerance: 2 * time.Second, Adjust: adjusting(func(c *podworker.LoopConfig) { c.GarbagePeriod = 100 * time.Second })})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}

// What cannot be removed is tried again, as often as the replayed agent collects garbage.
func TestRemovalsThatFailAreReplayedAtAnyNumber(t *testing.T) {
	cfg := nodeConfig{latency: 20 * time.Millisecond, seed: 1}
	cfg.fault = func(c fake.Call) error {
		if c.Method == "RemoveContainer" {
			return status.Error(codes.FailedPrecondition, "cannot delete running task")
		}
		return nil
	}
	r := open(t, recordNode(t, cfg, func(n node) {
		crash := pod("crash", container("main", "crash"))
		n.source.Set(crash)
		time.Sleep(2 * time.Minute)
		n.source.Set()
		time.Sleep(8 * time.Minute)
	}))
	for _, period := range []time.Duration{20 * time.Second, time.Minute, 4 * time.Minute} {
		result, err := replay.Run(t.Context(), r, replay.Options{Adjust: adjusting(func(c *podworker.LoopConfig) { c.GarbagePeriod = period })})
		require.NoError(t, err)
		assert.Nil(t, result.Divergence, "each %v: %v", period, result.Divergence)
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

// A container that disappears from the lists without an event was lost by the runtime.
func TestALostContainerIsReplayed(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("web", container("main", "nginx")))
		time.Sleep(25 * time.Second)
		list, err := n.fake.ListContainers(n.Context(), nil)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, n.fake.RemoveContainer(n.Context(), list[0].Id)) // not by the agent
		time.Sleep(20 * time.Second)
	}))
	frames := slices.DeleteFunc(slices.Collect(r.Frames()), func(f record.Frame) bool { // the replayed agent lists each second
		return f.Event != nil || f.Call != nil && f.Call.Method == "GetContainerEvents"
	})
	r, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
	assert.Greater(t, result.Compared, 6)
}
