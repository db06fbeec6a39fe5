package volume_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// From Mount to mounted, with a plugin that makes a directory and a file (target: 5 ms
// at the 99th percentile), while a thousand other volumes exist: on the disk, and on a
// file system in memory, which excludes the time of other writers to the disk.
func BenchmarkMount(b *testing.B) {
	b.Run("disk", func(b *testing.B) { benchMount(b, b.TempDir()) })
	b.Run("memory", func(b *testing.B) {
		dir, err := os.MkdirTemp("/dev/shm", "kubeparts")
		if err != nil {
			b.Skip(err)
		}
		b.Cleanup(func() { require.NoError(b, os.RemoveAll(dir)) })
		benchMount(b, dir)
	})
}

func benchMount(b *testing.B, root string) {
	n := &node{root: root, mounter: new(volumetest.Mounter), plugin: new(volumetest.Plugin)}
	start(b, n)
	for i := range 200 {
		_, err := n.Mount(b.Context(), pod(fmt.Sprintf("other-%d", i), "a", "b", "c", "d", "e"))
		require.NoError(b, err)
	}
	var took []time.Duration
	i := 0
	for b.Loop() {
		i++
		p := pod(fmt.Sprintf("pod-%d", i), "data")
		begun := time.Now()
		_, err := n.Mount(b.Context(), p)
		took = append(took, time.Since(begun))
		require.NoError(b, err)
		require.NoError(b, n.Unmount(b.Context(), p))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// A pod's sync without changes.
func BenchmarkMountAgain(b *testing.B) {
	n := &node{root: b.TempDir(), mounter: new(volumetest.Mounter), plugin: new(volumetest.Plugin)}
	start(b, n)
	p := pod("p", "a", "b", "c", "d", "e")
	for b.Loop() {
		_, err := n.Mount(b.Context(), p)
		require.NoError(b, err)
	}
}

// The reconciler's wake-ups per second while nothing changes, with a thousand volumes
// mounted.
func BenchmarkIdleWakeups(b *testing.B) {
	n := &node{root: b.TempDir(), mounter: new(volumetest.Mounter), plugin: new(volumetest.Plugin)}
	start(b, n)
	for i := range 200 {
		_, err := n.Mount(b.Context(), pod(fmt.Sprintf("pod-%d", i), "a", "b", "c", "d", "e"))
		require.NoError(b, err)
	}
	time.Sleep(100 * time.Millisecond)
	woken, begun := n.wokenTimes(), time.Now()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	b.ReportMetric(float64(n.wokenTimes()-woken)/time.Since(begun).Seconds(), "wakeups/s")
}
