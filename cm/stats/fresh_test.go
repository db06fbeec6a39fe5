package stats_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestFreshness(t *testing.T) { // stats-4, stats-6
	synctest.Test(t, func(t *testing.T) {
		s, p := web("u1")
		rt := &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}
		proc := machine()
		c := collector(t, stats.Config{Runtime: rt, Root: proc})
		first, err := c.Summary(t.Context(), false)
		require.NoError(t, err)
		time.Sleep(time.Second)
		again, err := c.Summary(t.Context(), false)
		require.NoError(t, err)
		assert.Same(t, first, again, "from the cache")
		proc["proc/meminfo"] = file("MemTotal: 8000 kB\nMemFree: 1000 kB\n")
		proc["proc/stat"] = file("cpu 150 0 200 9000 50 0 0 0 10 0\n")
		fresh, err := c.Summary(t.Context(), true)
		require.NoError(t, err)
		assert.EqualValues(t, 7000<<10, *fresh.Node.Memory.UsageBytes, "stats-4")
		assert.EqualValues(t, 500_000_000, *fresh.Node.CPU.UsageNanoCores, "stats-6: half a CPU in a second")
		assert.EqualValues(t, 1, rt.calls.Load(), "stats-4: pods stay as cached")

		time.Sleep(20 * time.Second)
		s.CPU = &runtime.CPUUsage{At: time.Unix(1010, 0), CoreNanos: known(6e9)}
		rt.stats = []runtime.PodStats{s}
		later, err := c.Summary(t.Context(), false)
		require.NoError(t, err)
		assert.EqualValues(t, 2, rt.calls.Load())
		assert.EqualValues(t, 500_000_000, *later.Pods[0].CPU.UsageNanoCores, "stats-6: 5 s of CPU in 10 s")

		time.Sleep(20 * time.Second)
		s.CPU = &runtime.CPUUsage{At: time.Unix(1020, 0), CoreNanos: known(1e9)}
		rt.stats = []runtime.PodStats{s}
		later, err = c.Summary(t.Context(), false)
		require.NoError(t, err)
		assert.Nil(t, later.Pods[0].CPU.UsageNanoCores, "the counter was reset")

		time.Sleep(11 * time.Minute)
		rt.stats = nil
		_, err = c.Summary(t.Context(), false)
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		s.CPU = &runtime.CPUUsage{At: time.Unix(1030, 0), CoreNanos: known(2e9)}
		rt.stats = []runtime.PodStats{s}
		later, err = c.Summary(t.Context(), false)
		require.NoError(t, err)
		assert.Nil(t, later.Pods[0].CPU.UsageNanoCores, "stats-6: a sample is kept for 10 minutes")
	})
}

// An eviction is decided by disks that are measured now and pods of this second; other
// readers get cached values.
func TestFreshDisksAndPods(t *testing.T) { // stats-4, ev-16
	synctest.Test(t, func(t *testing.T) {
		s, p := web("u1")
		rt := &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}
		free, gone := uint64(400), false
		c := collector(t, stats.Config{Runtime: rt, Root: machine(), NodeDir: "/var", Disk: func(path string) (stats.Disk, error) {
			if gone && path == "/images" {
				return stats.Disk{}, os.ErrNotExist
			}
			return stats.Disk{Capacity: 1000, Available: free}, nil
		}})
		ctx := t.Context()
		_, err := c.Summary(ctx, false)
		require.NoError(t, err)
		time.Sleep(500 * time.Millisecond)
		free = 300
		got, err := c.Summary(ctx, true)
		require.NoError(t, err)
		assert.EqualValues(t, 300, *got.Node.Fs.AvailableBytes)
		assert.EqualValues(t, 300, *got.Node.Runtime.ImageFs.AvailableBytes)
		assert.EqualValues(t, 77, *got.Node.Runtime.ImageFs.UsedBytes, "stats-8: the usage of images is reported by the runtime")
		assert.Equal(t, time.Now(), got.Node.Fs.Time.Time, "ev-22: newer than the last pass")
		assert.EqualValues(t, 1, rt.calls.Load(), "the pods are of this second")
		old, err := c.Summary(ctx, false)
		require.NoError(t, err)
		assert.EqualValues(t, 400, *old.Node.Fs.AvailableBytes, "a cached read does not block")

		time.Sleep(5 * time.Second)
		s.Memory = &runtime.MemoryUsage{At: time.Unix(1005, 0), WorkingSet: known(900)}
		rt.stats = []runtime.PodStats{s}
		got, err = c.Summary(ctx, true)
		require.NoError(t, err)
		assert.EqualValues(t, 900, *one(t, got.Pods).Memory.WorkingSetBytes)
		assert.EqualValues(t, 2, rt.calls.Load())
		light, err := c.CPUAndMemory(ctx)
		require.NoError(t, err)
		assert.EqualValues(t, 900, *one(t, light.Pods).Memory.WorkingSetBytes)

		time.Sleep(time.Second)
		gone = true
		got, err = c.Summary(ctx, true)
		require.ErrorContains(t, err, "/images")
		assert.Nil(t, got.Node.Runtime.ImageFs, "a disk that can't be read now is not reported from the cache")
		assert.NotNil(t, got.Node.Fs)
		time.Sleep(2 * time.Second)
		_, err = c.CPUAndMemory(ctx)
		require.NoError(t, err, "stats-3: of no disk")
		assert.EqualValues(t, 2, rt.calls.Load(), "it takes the pods that there are")
	})
}

func TestManyReadersMakeTheRuntimeWorkOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &crt{slow: time.Second}
		c := collector(t, stats.Config{Runtime: rt, Root: machine()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(100 * time.Millisecond)
		for range 10 {
			go func() { _, _ = c.Summary(ctx, true) }()
		}
		time.Sleep(3 * time.Second)
		assert.EqualValues(t, 1, rt.calls.Load())
		short, end := context.WithTimeout(ctx, time.Millisecond)
		defer end()
		_, err := c.Summary(short, false)
		require.NoError(t, err, "Run keeps it warm")
		time.Sleep(10 * time.Minute)
		assert.EqualValues(t, 1, rt.calls.Load(), "a single reader causes no further collections")
		for range 10 { // once a minute
			_, err := c.Summary(ctx, false)
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		assert.LessOrEqual(t, rt.calls.Load(), int32(1+2+10*2))
		_, err = c.Summary(short, false)
		assert.NoError(t, err, "Run keeps it warm before the next read")
		time.Sleep(10 * time.Minute)
		quiet, disks := rt.calls.Load(), rt.disks.Load()
		for range 6 {
			_, err = c.Summary(ctx, true)
			require.NoError(t, err)
			_, err = c.Summary(ctx, false)
			require.NoError(t, err)
			time.Sleep(7 * time.Second)
		}
		assert.Equal(t, quiet+6, rt.calls.Load(), "fresh summaries refresh the cache for all readers")
		assert.LessOrEqual(t, rt.disks.Load()-disks, int32(1), "once a minute")
		cancel()
		assert.NoError(t, <-done)
		_, err = collector(t, stats.Config{Runtime: &crt{slow: time.Hour}}).Summary(ctx, false)
		assert.ErrorIs(t, err, context.Canceled)
	})
}

func TestCPUAndMemoryAlone(t *testing.T) { // stats-3
	s, p := web("u1")
	c := collector(t, stats.Config{Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, Root: machine(), NodeDir: "/"})
	got, err := c.CPUAndMemory(t.Context())
	require.NoError(t, err)
	pod := one(t, got.Pods)
	assert.NotNil(t, got.Node.Memory)
	assert.NotNil(t, got.Node.Swap)
	assert.Nil(t, got.Node.Fs)
	assert.Nil(t, got.Node.Network)
	assert.NotNil(t, pod.Memory)
	assert.Nil(t, pod.Network)
	assert.Nil(t, pod.EphemeralStorage)
	main := one(t, pod.Containers)
	assert.NotNil(t, main.Swap)
	assert.Nil(t, main.Rootfs)
}

func TestTheNodeIsReadWithoutItsPods(t *testing.T) { // stats-4, ev-16
	synctest.Test(t, func(t *testing.T) {
		s, p := web("u1")
		rt := &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}
		proc, free := machine(), uint64(400)
		c := collector(t, stats.Config{NodeName: "node", Runtime: rt, Root: proc, NodeDir: "/var", Disk: func(path string) (stats.Disk, error) {
			if free == 0 {
				return stats.Disk{}, os.ErrNotExist
			}
			return stats.Disk{Capacity: 1000, Available: free}, nil
		}})
		full, err := c.Summary(t.Context(), true)
		require.NoError(t, err)
		alone, err := c.Node(t.Context())
		require.NoError(t, err)
		assert.Equal(t, full.Node, alone.Node)
		assert.Empty(t, alone.Pods)

		time.Sleep(10 * time.Second)
		free = 300
		proc["proc/meminfo"] = file("MemTotal: 8000 kB\nMemFree: 1000 kB\n")
		alone, err = c.Node(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 300, *alone.Node.Fs.AvailableBytes)
		assert.EqualValues(t, 7000<<10, *alone.Node.Memory.UsageBytes)
		assert.EqualValues(t, 1, rt.calls.Load(), "pods are not read")

		free = 0
		alone, err = c.Node(t.Context())
		assert.ErrorIs(t, err, os.ErrNotExist)
		assert.NotNil(t, alone.Node.Memory)
	})
}
