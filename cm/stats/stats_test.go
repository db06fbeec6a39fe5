package stats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/runtime"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// machine is a node's /proc.
func machine() fstest.MapFS {
	return fstest.MapFS{
		"proc/meminfo":                file("MemTotal: 8000 kB\nMemFree: 3000 kB\nInactive(file): 1000 kB\nAnonPages: 2000 kB\nSwapTotal: 500 kB\nSwapFree: 400 kB\n"),
		"proc/vmstat":                 file("pgfault 100\npgmajfault 7\n"),
		"proc/stat":                   file("cpu  100 0 200 9000 50 0 0 0 10 0\ncpu0 1 1 1 1\n"),
		"proc/pressure/cpu":           file("some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
		"proc/pressure/memory":        file("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
		"proc/pressure/io":            file("some avg10=5.00 avg60=0.00 avg300=0.00 total=9\n"),
		"proc/net/dev":                file("Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 1000 5 2 0 0 0 0 0 3000 7 4 0 0 0 0 0\n"),
		"proc/loadavg":                file("0.1 0.2 0.3 2/345 6789\n"),
		"proc/sys/kernel/pid_max":     file("4194304\n"),
		"proc/sys/kernel/threads-max": file("63000\n"),
	}
}

func known(n uint64) runtime.Number { return runtime.Number{Value: n, Known: true} }

// crt is a runtime that says what it was told to.
type crt struct {
	stats []runtime.PodStats
	pods  []*runtime.Pod
	err   error
	calls atomic.Int32
	slow  time.Duration
}

func (r *crt) PodStats(ctx context.Context) ([]runtime.PodStats, error) {
	r.calls.Add(1)
	if r.slow > 0 {
		select {
		case <-time.After(r.slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r.stats, r.err
}
func (r *crt) Pods(context.Context) ([]*runtime.Pod, error) { return r.pods, r.err }
func (r *crt) ImageFS(context.Context) (images, containers []runtime.FSUsage, err error) {
	return []runtime.FSUsage{{Mountpoint: "/images", Bytes: known(77), Inodes: known(7)}}, nil, r.err
}

func disk(path string) (stats.Disk, error) {
	if path == "/gone" {
		return stats.Disk{}, os.ErrNotExist
	}
	return stats.Disk{Capacity: 1000, Available: 400, Used: 600, Inodes: 100, InodesFree: 60, InodesInUse: 40}, nil
}

func collector(t *testing.T, cfg stats.Config) *stats.Collector {
	t.Helper()
	if cfg.NodeName == "" {
		cfg.NodeName = "n1"
	}
	if cfg.Disk == nil {
		cfg.Disk = disk
	}
	c, err := stats.New(cfg)
	require.NoError(t, err)
	return c
}

func one[T any](t *testing.T, list []T) T {
	t.Helper()
	require.Len(t, list, 1)
	return list[0]
}

func TestTheNodeItself(t *testing.T) { // st-1, st-2, st-5, st-8, st-9, st-11, st-14
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: []string{"cpu", "memory"}})
	tree.Use(cgroups.Name{"kubepods"}, cgroups.Stats{
		Memory: &cgroups.MemoryStats{Usage: 300, WorkingSet: 200, Limit: 1000}, CPU: &cgroups.CPUStats{UsageNanos: 5},
	})
	c := collector(t, stats.Config{
		Root: machine(), Cgroups: tree, NodeDir: "/var/lib/kubelet", Runtime: &crt{},
		System: map[string]cgroups.Name{"pods": {"kubepods"}, "kubelet": {"gone"}},
	})
	s, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	n := s.Node
	assert.Equal(t, "n1", n.NodeName)
	assert.False(t, n.StartTime.IsZero())
	assert.EqualValues(t, 5000<<10, *n.Memory.UsageBytes)
	assert.EqualValues(t, 4000<<10, *n.Memory.WorkingSetBytes, "st-5")
	assert.EqualValues(t, 4000<<10, *n.Memory.AvailableBytes, "st-5: of the machine's memory")
	assert.EqualValues(t, 7, *n.Memory.MajorPageFaults)
	assert.EqualValues(t, 3_000_000_000, *n.CPU.UsageCoreNanoSeconds, "without idle, iowait and guests")
	assert.Nil(t, n.CPU.UsageNanoCores, "st-6")
	assert.Equal(t, statsapi.PSIData{Total: 4000, Avg10: 1, Avg60: 2, Avg300: 3}, n.CPU.PSI.Some, "st-14")
	assert.NotNil(t, n.Memory.PSI)
	assert.EqualValues(t, 5, n.IO.PSI.Some.Avg10)
	assert.EqualValues(t, 100<<10, *n.Swap.SwapUsageBytes)
	assert.Equal(t, "eth0", n.Network.Name)
	assert.EqualValues(t, 3000, *n.Network.TxBytes)
	assert.EqualValues(t, 63000, *n.Rlimit.MaxPID, "st-11")
	assert.EqualValues(t, 345, *n.Rlimit.NumOfRunningProcesses, "st-11")
	assert.EqualValues(t, 400, *n.Fs.AvailableBytes)
	assert.EqualValues(t, 77, *n.Runtime.ImageFs.UsedBytes, "st-8")
	assert.EqualValues(t, 60, *n.Runtime.ImageFs.InodesFree, "st-8")
	assert.Equal(t, n.Runtime.ImageFs, n.Runtime.ContainerFs, "st-9")
	pods := one(t, n.SystemContainers)
	assert.Equal(t, "pods", pods.Name, "st-2: one that is not there is left out")
	assert.EqualValues(t, 800, *pods.Memory.AvailableBytes)

	none := collector(t, stats.Config{Root: fstest.MapFS{}})
	s, err = none.Summary(t.Context(), false)
	require.NoError(t, err)
	assert.Nil(t, s.Node.Memory, "what is not known is absent")
	assert.Nil(t, s.Node.CPU)
	assert.Empty(t, s.Pods)

	broken := collector(t, stats.Config{Root: machine(), NodeDir: "/gone", Runtime: &crt{err: errors.New("away")}})
	s, err = broken.Summary(t.Context(), false)
	assert.ErrorContains(t, err, "/gone")
	assert.ErrorContains(t, err, "away")
	assert.NotNil(t, s.Node.Memory, "the rest is there")
}

// web is a pod as a runtime tells of it.
func web(uid types.UID) (runtime.PodStats, *runtime.Pod) {
	at := time.Unix(1000, 0)
	id := "crt://" + string(uid)
	return runtime.PodStats{
			UID: uid, Name: "web", Namespace: "default", SandboxID: "s1",
			CPU: &runtime.CPUUsage{At: at, CoreNanos: known(1e9)}, Memory: &runtime.MemoryUsage{At: at, WorkingSet: known(500), Usage: known(600)},
			Network: []runtime.NetworkUsage{{Name: "eth0", RxBytes: known(1)}}, Processes: known(3),
			Containers: []runtime.ContainerStats{{
				ID: id, Name: "main", CPU: &runtime.CPUUsage{At: at, CoreNanos: known(9e8), NanoCores: known(5)},
				Memory: &runtime.MemoryUsage{At: at, WorkingSet: known(400), Available: known(100)}, Swap: &runtime.SwapUsage{At: at, Usage: known(8)},
				WritableLayer: &runtime.FSUsage{At: at, Mountpoint: "/images", Bytes: known(50), Inodes: known(5)},
			}},
		}, &runtime.Pod{
			UID: uid, CreatedAt: at.Add(-time.Hour), Sandboxes: []runtime.Sandbox{{ID: "s1", CreatedAt: at.Add(-time.Minute)}},
			Containers: []runtime.Container{{ID: id, Name: "main", CreatedAt: at.Add(-time.Second)}},
		}
}

func TestWhatTheRuntimeSaysOfAPod(t *testing.T) { // st-1, st-12, st-13
	s, p := web("u1")
	c := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}},
		Volumes: func(types.UID) []statsapi.VolumeStats {
			return []statsapi.VolumeStats{{Name: "data", FsStats: statsapi.FsStats{UsedBytes: new(uint64(1))}}}
		},
	})
	summary, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	pod := one(t, summary.Pods)
	assert.Equal(t, statsapi.PodReference{Name: "web", Namespace: "default", UID: "u1"}, pod.PodRef)
	assert.Equal(t, time.Unix(1000, 0).Add(-time.Minute), pod.StartTime.Time)
	assert.EqualValues(t, 500, *pod.Memory.WorkingSetBytes)
	assert.EqualValues(t, 1e9, *pod.CPU.UsageCoreNanoSeconds)
	assert.Nil(t, pod.CPU.UsageNanoCores)
	assert.EqualValues(t, 3, *pod.ProcessStats.ProcessCount)
	assert.Equal(t, "eth0", pod.Network.Name, "st-12")
	assert.Equal(t, "data", one(t, pod.VolumeStats).Name)
	main := one(t, pod.Containers)
	assert.Equal(t, time.Unix(999, 0), main.StartTime.Time)
	assert.EqualValues(t, 5, *main.CPU.UsageNanoCores)
	assert.EqualValues(t, 100, *main.Memory.AvailableBytes)
	assert.EqualValues(t, 8, *main.Swap.SwapUsageBytes)
	assert.EqualValues(t, 50, *main.Rootfs.UsedBytes)
	assert.EqualValues(t, 1000, *main.Rootfs.CapacityBytes)

	host := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, HostNetwork: func(types.UID) bool { return true },
	})
	summary, err = host.Summary(t.Context(), false)
	require.NoError(t, err)
	assert.Nil(t, one(t, summary.Pods).Network, "st-12")
}

func TestCgroupsFillInWhatTheRuntimeDoesNotSay(t *testing.T) { // st-5, st-13, st-14, F-69
	s, p := web("u1")
	s.CPU, s.Memory, s.Processes = nil, nil, runtime.Number{}
	s.Containers[0].CPU, s.Containers[0].Memory, s.Containers[0].Swap = nil, &runtime.MemoryUsage{}, nil
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: []string{"cpu", "memory"}})
	group := cgroups.Name{"kubepods", "podu1"}
	use := cgroups.Stats{
		At: time.Unix(5, 0), CPU: &cgroups.CPUStats{UsageNanos: 42, PSI: &cgroups.PSI{Some: cgroups.PSIData{Avg10: 3}}},
		Memory: &cgroups.MemoryStats{Usage: 30, WorkingSet: 20, Limit: cgroups.Unlimited}, Swap: &cgroups.SwapStats{Usage: 4, Limit: 10},
		Pids: &cgroups.PidsStats{Current: 6}, IO: &cgroups.IOStats{PSI: &cgroups.PSI{Full: cgroups.PSIData{Avg60: 2}}},
	}
	tree.Use(group, use)
	tree.Use(group.Child("u1"), use)
	c := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, Cgroups: tree,
		PodCgroup: func(uid types.UID) (cgroups.Name, bool) { return group, true },
	})
	summary, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	pod := one(t, summary.Pods)
	assert.EqualValues(t, 42, *pod.CPU.UsageCoreNanoSeconds)
	assert.EqualValues(t, 3, pod.CPU.PSI.Some.Avg10, "st-14")
	assert.EqualValues(t, 20, *pod.Memory.WorkingSetBytes)
	assert.Nil(t, pod.Memory.AvailableBytes, "st-5: no limit")
	assert.EqualValues(t, 6, *pod.Swap.SwapAvailableBytes)
	assert.EqualValues(t, 6, *pod.ProcessStats.ProcessCount)
	assert.EqualValues(t, 2, pod.IO.PSI.Full.Avg60)
	main := one(t, pod.Containers)
	assert.EqualValues(t, 42, *main.CPU.UsageCoreNanoSeconds)
	assert.EqualValues(t, 20, *main.Memory.WorkingSetBytes)

	// The cgroup has vanished: what there is without it.
	require.NoError(t, tree.Remove(t.Context(), group))
	gone := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, Cgroups: tree,
		PodCgroup: func(uid types.UID) (cgroups.Name, bool) { return group, true },
	})
	summary, err = gone.Summary(t.Context(), false)
	require.NoError(t, err)
	assert.Nil(t, one(t, summary.Pods).Memory)
}

func TestTheNewestOfOneNameCounts(t *testing.T) { // st-7
	s, p := web("u1")
	old := s.Containers[0]
	old.ID, old.Memory = "crt://old", &runtime.MemoryUsage{WorkingSet: known(1)}
	pause := runtime.ContainerStats{ID: "crt://pause"}
	s.Containers = []runtime.ContainerStats{old, s.Containers[0], pause}
	p.Containers = append(p.Containers, runtime.Container{ID: "crt://old", Name: "main", CreatedAt: time.Unix(1, 0)})
	p.Sandboxes = append(p.Sandboxes, runtime.Sandbox{ID: "s0"})
	dead := s
	dead.SandboxID, dead.Memory = "s0", nil
	for _, list := range [][]runtime.PodStats{{s, dead}, {dead, s}} {
		c := collector(t, stats.Config{Runtime: &crt{stats: list, pods: []*runtime.Pod{p}}})
		summary, err := c.Summary(t.Context(), false)
		require.NoError(t, err)
		pod := one(t, summary.Pods)
		assert.NotNil(t, pod.Memory)
		assert.EqualValues(t, 400, *one(t, pod.Containers).Memory.WorkingSetBytes)
	}
}

func TestEphemeralStorage(t *testing.T) { // st-10
	dir := t.TempDir()
	put := func(name string, size int) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o644))
		return path
	}
	put("logs/main/0.log", 1000)
	put("logs/main/0.log.20260101", 200)
	put("logs/pod.log", 30)
	hosts := put("etc-hosts", 4)
	s, p := web("u1")
	c := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, NodeDir: dir,
		LogDir:    func(string, string, types.UID) string { return filepath.Join(dir, "logs") },
		HostsFile: func(types.UID) string { return hosts },
		Volumes: func(types.UID) []statsapi.VolumeStats {
			v := func(name string, n uint64) statsapi.VolumeStats {
				return statsapi.VolumeStats{Name: name, FsStats: statsapi.FsStats{UsedBytes: &n, InodesUsed: new(uint64(1))}}
			}
			return []statsapi.VolumeStats{v("empty", 100_000), v("claim", 1<<40)}
		},
		Ephemeral: func(_ types.UID, volume string) bool { return volume == "empty" },
	})
	summary, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	pod := one(t, summary.Pods)
	assert.EqualValues(t, 1200, *one(t, pod.Containers).Logs.UsedBytes)
	assert.EqualValues(t, 50+1200+100_000+30+4, *pod.EphemeralStorage.UsedBytes)
	assert.EqualValues(t, 5+2+1+1+1, *pod.EphemeralStorage.InodesUsed)
	assert.EqualValues(t, 1000, *pod.EphemeralStorage.CapacityBytes)
}

func TestWhatIsFresh(t *testing.T) { // st-4, st-6
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
		assert.EqualValues(t, 7000<<10, *fresh.Node.Memory.UsageBytes, "st-4")
		assert.EqualValues(t, 500_000_000, *fresh.Node.CPU.UsageNanoCores, "st-6: half a CPU in a second")
		assert.EqualValues(t, 1, rt.calls.Load(), "st-4: pods stay as cached")

		time.Sleep(20 * time.Second)
		s.CPU = &runtime.CPUUsage{At: time.Unix(1010, 0), CoreNanos: known(6e9)}
		rt.stats = []runtime.PodStats{s}
		later, err := c.Summary(t.Context(), false)
		require.NoError(t, err)
		assert.EqualValues(t, 2, rt.calls.Load())
		assert.EqualValues(t, 500_000_000, *later.Pods[0].CPU.UsageNanoCores, "st-6: 5 s of CPU in 10 s")

		time.Sleep(20 * time.Second)
		s.CPU = &runtime.CPUUsage{At: time.Unix(1020, 0), CoreNanos: known(1e9)}
		rt.stats = []runtime.PodStats{s}
		later, err = c.Summary(t.Context(), false)
		require.NoError(t, err)
		assert.Nil(t, later.Pods[0].CPU.UsageNanoCores, "the counter has begun anew")

		time.Sleep(11 * time.Minute)
		rt.stats = nil
		_, err = c.Summary(t.Context(), false)
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		s.CPU = &runtime.CPUUsage{At: time.Unix(1030, 0), CoreNanos: known(2e9)}
		rt.stats = []runtime.PodStats{s}
		later, err = c.Summary(t.Context(), false)
		require.NoError(t, err)
		assert.Nil(t, later.Pods[0].CPU.UsageNanoCores, "st-6: a sample is kept for 10 minutes")
	})
}

// An eviction is decided by disks as they are and by pods of this second; who only
// looks gets what there is.
func TestFreshDisksAndPods(t *testing.T) { // st-4, ev-16
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
		assert.EqualValues(t, 77, *got.Node.Runtime.ImageFs.UsedBytes, "st-8: what images use is the runtime's word")
		assert.Equal(t, time.Now(), got.Node.Fs.Time.Time, "ev-22: newer than the last pass")
		assert.EqualValues(t, 1, rt.calls.Load(), "the pods are of this second")
		old, err := c.Summary(ctx, false)
		require.NoError(t, err)
		assert.EqualValues(t, 400, *old.Node.Fs.AvailableBytes, "who only looks waits for nothing")

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
		assert.Nil(t, got.Node.Runtime.ImageFs, "a disk that can't be read now is not told of from the cache")
		assert.NotNil(t, got.Node.Fs)
		time.Sleep(2 * time.Second)
		_, err = c.CPUAndMemory(ctx)
		require.NoError(t, err, "st-3: of no disk")
		assert.EqualValues(t, 2, rt.calls.Load(), "it takes the pods that there are")
	})
}

// Where the runtime says part of it, the cgroup says the rest (F-69).
func TestCgroupsFillInFieldByField(t *testing.T) {
	s, p := web("u1")
	s.Memory = &runtime.MemoryUsage{At: time.Unix(1000, 0), WorkingSet: known(500)}
	s.CPU = &runtime.CPUUsage{At: time.Unix(1000, 0)} // it says when, and no more
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: []string{"cpu", "memory"}})
	group := cgroups.Name{"kubepods", "podu1"}
	use := cgroups.Stats{
		At: time.Unix(5, 0), CPU: &cgroups.CPUStats{UsageNanos: 42},
		Memory: &cgroups.MemoryStats{Usage: 900, WorkingSet: 1, RSS: 7, Faults: 8, Major: 9, Limit: 1000, PSI: &cgroups.PSI{Some: cgroups.PSIData{Avg10: 4}}},
	}
	tree.Use(group, use)
	tree.Use(group.Child("main-of-u1"), use)
	c := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, Cgroups: finder{tree},
		PodCgroup: func(uid types.UID) (cgroups.Name, bool) { return group, true },
	})
	summary, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	pod := one(t, summary.Pods)
	assert.EqualValues(t, 500, *pod.Memory.WorkingSetBytes, "the runtime's word comes first")
	assert.EqualValues(t, 900, *pod.Memory.UsageBytes)
	assert.EqualValues(t, 999, *pod.Memory.AvailableBytes)
	assert.EqualValues(t, 7, *pod.Memory.RSSBytes)
	assert.EqualValues(t, 8, *pod.Memory.PageFaults)
	assert.EqualValues(t, 9, *pod.Memory.MajorPageFaults)
	assert.EqualValues(t, 42, *pod.CPU.UsageCoreNanoSeconds)
	main := one(t, pod.Containers)
	assert.EqualValues(t, 400, *main.Memory.WorkingSetBytes)
	assert.EqualValues(t, 4, main.Memory.PSI.Some.Avg10, "st-14: of a container, whatever its cgroup is called")
}

// finder calls containers' cgroups as no driver does.
type finder struct{ *cgroups.Tree }

func (f finder) ContainerStats(pod cgroups.Name, id string) (cgroups.Stats, error) {
	return f.Stats(pod.Child("main-of-" + id))
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
		time.Sleep(30 * time.Second)
		assert.EqualValues(t, 4, rt.calls.Load())
		cancel()
		assert.NoError(t, <-done)
		_, err = collector(t, stats.Config{Runtime: &crt{slow: time.Hour}}).Summary(ctx, false)
		assert.ErrorIs(t, err, context.Canceled)
	})
}

func TestCPUAndMemoryAlone(t *testing.T) { // st-3
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

func TestAConfigurationThatCannotBe(t *testing.T) {
	_, err := stats.New(stats.Config{})
	assert.ErrorContains(t, err, "NodeName")
	_, err = stats.New(stats.Config{NodeName: "n", MaxAge: -1})
	assert.ErrorContains(t, err, "MaxAge")
	d, err := stats.Statfs(t.TempDir())
	if err == nil {
		assert.NotZero(t, d.Capacity)
	}
}

// crowd is a node of many pods.
func crowd(pods int) (*crt, *cgroups.Tree, func(types.UID) (cgroups.Name, bool)) {
	rt := new(crt)
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: []string{"cpu", "memory"}})
	group := func(uid types.UID) (cgroups.Name, bool) {
		return cgroups.Name{"kubepods", "burstable", "pod" + string(uid)}, true
	}
	for i := range pods {
		s, p := web(types.UID(fmt.Sprint("u", i)))
		rt.stats, rt.pods = append(rt.stats, s), append(rt.pods, p)
		name, _ := group(s.UID)
		tree.Use(name, cgroups.Stats{CPU: &cgroups.CPUStats{}, Memory: &cgroups.MemoryStats{}})
	}
	return rt, tree, group
}

// F-69: a full summary of 110 pods, at most 20 ms. Warm is what readers get while
// Run is at work; fresh is what an eviction asks for; cold builds all of it.
func BenchmarkSummaryOf110Pods(b *testing.B) {
	rt, tree, group := crowd(110)
	c, err := stats.New(stats.Config{NodeName: "n", Runtime: rt, Cgroups: tree, PodCgroup: group, Root: os.DirFS("/"), Disk: disk, NodeDir: "/"})
	require.NoError(b, err)
	_, err = c.Summary(b.Context(), false)
	require.NoError(b, err)
	b.Run("warm", func(b *testing.B) {
		for b.Loop() {
			_, _ = c.Summary(b.Context(), false)
		}
	})
	b.Run("fresh", func(b *testing.B) {
		for b.Loop() {
			_, _ = c.Summary(b.Context(), true)
		}
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			cold, _ := stats.New(stats.Config{NodeName: "n", Runtime: rt, Cgroups: tree, PodCgroup: group, Root: os.DirFS("/"), Disk: disk, NodeDir: "/"})
			_, _ = cold.Summary(b.Context(), false)
		}
	})
}
