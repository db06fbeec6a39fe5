package stats_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/fstest"
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

// podFacts implements stats.Pods with the same facts for each pod.
type podFacts struct {
	cgroup                cgroups.Name
	hostNetwork           bool
	ephemeral, persistent []statsapi.VolumeStats
	paths                 stats.Paths
}

func (p podFacts) Cgroup(types.UID) (cgroups.Name, bool)       { return p.cgroup, p.cgroup != nil }
func (p podFacts) HostNetwork(types.UID) bool                  { return p.hostNetwork }
func (p podFacts) Paths(string, string, types.UID) stats.Paths { return p.paths }
func (p podFacts) VolumeStats(types.UID) (_, _ []statsapi.VolumeStats) {
	return p.ephemeral, p.persistent
}

// machine is a node's /proc.
func machine() fstest.MapFS {
	return fstest.MapFS{
		"proc/meminfo":                file("MemTotal: 8000 kB\nMemFree: 3000 kB\nInactive(file): 1000 kB\nAnonPages: 2000 kB\nSwapTotal: 500 kB\nSwapFree: 400 kB\n"),
		"proc/vmstat":                 file("pgfault 100\npgmajfault 7\n"),
		"proc/stat":                   file("cpu  100 0 200 9000 50 0 0 0 10 0\ncpu0 1 1 1 1\n"),
		"proc/pressure/cpu":           file("some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
		"proc/pressure/memory":        file("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
		"proc/pressure/io":            file("some avg10=5.00 avg60=0.00 avg300=0.00 total=9\n"),
		"proc/net/dev":                file("Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 1000 5 2 0 0 0 0 0 3000 7 4 0 0 0 0 0\nvethb1f9: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"),
		"proc/loadavg":                file("0.1 0.2 0.3 2/345 6789\n"),
		"proc/sys/kernel/pid_max":     file("4194304\n"),
		"proc/sys/kernel/threads-max": file("63000\n"),
	}
}

func known(n uint64) *uint64 { return &n }

// crt is a runtime with configurable responses.
type crt struct {
	stats []runtime.PodStats
	pods  []*runtime.Pod
	err   error
	calls atomic.Int32
	disks atomic.Int32 // calls of ImageFS
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
	r.disks.Add(1)
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

func TestTheNodeItself(t *testing.T) { // stats-1, stats-2, stats-5, stats-8, stats-9, stats-11, stats-14
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
	assert.EqualValues(t, 4000<<10, *n.Memory.WorkingSetBytes, "stats-5")
	assert.EqualValues(t, 4000<<10, *n.Memory.AvailableBytes, "stats-5: of the machine's memory")
	assert.EqualValues(t, 7, *n.Memory.MajorPageFaults)
	assert.EqualValues(t, 3_000_000_000, *n.CPU.UsageCoreNanoSeconds, "without idle, iowait and guests")
	assert.Nil(t, n.CPU.UsageNanoCores, "stats-6")
	assert.Equal(t, statsapi.PSIData{Total: 4000, Avg10: 1, Avg60: 2, Avg300: 3}, n.CPU.PSI.Some, "stats-14")
	assert.NotNil(t, n.Memory.PSI)
	assert.EqualValues(t, 5, n.IO.PSI.Some.Avg10)
	assert.EqualValues(t, 100<<10, *n.Swap.SwapUsageBytes)
	assert.Equal(t, "eth0", n.Network.Name)
	assert.Len(t, n.Network.Interfaces, 1, "a pod's is its own")
	assert.EqualValues(t, 3000, *n.Network.TxBytes)
	assert.EqualValues(t, 63000, *n.Rlimit.MaxPID, "stats-11")
	assert.EqualValues(t, 345, *n.Rlimit.NumOfRunningProcesses, "stats-11")
	assert.EqualValues(t, 400, *n.Fs.AvailableBytes)
	assert.EqualValues(t, 77, *n.Runtime.ImageFs.UsedBytes, "stats-8")
	assert.EqualValues(t, 60, *n.Runtime.ImageFs.InodesFree, "stats-8")
	assert.Equal(t, n.Runtime.ImageFs, n.Runtime.ContainerFs, "stats-9")
	pods := one(t, n.SystemContainers)
	assert.Equal(t, "pods", pods.Name, "stats-2: a missing one is left out")
	assert.EqualValues(t, 800, *pods.Memory.AvailableBytes)

	none := collector(t, stats.Config{Root: fstest.MapFS{}})
	s, err = none.Summary(t.Context(), false)
	require.NoError(t, err)
	assert.Nil(t, s.Node.Memory, "unknown values are absent")
	assert.Nil(t, s.Node.CPU)
	assert.Empty(t, s.Pods)

	broken := collector(t, stats.Config{Root: machine(), NodeDir: "/gone", Runtime: &crt{err: errors.New("away")}})
	s, err = broken.Summary(t.Context(), false)
	assert.ErrorContains(t, err, "/gone")
	assert.ErrorContains(t, err, "away")
	assert.NotNil(t, s.Node.Memory, "the rest is reported")
}

// web is a pod as a runtime reports it.
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

// Memory of huge pages is neither used nor available: evictions measure the rest of the
// node's memory (HugepageAwareEviction of Kubernetes 1.37).
func TestHugePagesAreNotPartOfTheNodesMemory(t *testing.T) { // stats-5
	proc := machine()
	proc["proc/meminfo"] = file("MemTotal: 8000 kB\nMemFree: 3000 kB\nInactive(file): 1000 kB\nHugePages_Total: 1\nHugetlb: 2048 kB\n")
	s, err := collector(t, stats.Config{Root: proc}).Summary(t.Context(), true)
	require.NoError(t, err)
	m := s.Node.Memory
	assert.EqualValues(t, 2952<<10, *m.UsageBytes)
	assert.EqualValues(t, 1952<<10, *m.WorkingSetBytes)
	assert.EqualValues(t, 4000<<10, *m.AvailableBytes)
}

func TestPodStatsFromTheRuntime(t *testing.T) { // stats-1, stats-12, stats-13
	s, p := web("u1")
	c := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}},
		Pods:    podFacts{persistent: []statsapi.VolumeStats{{Name: "data", FsStats: statsapi.FsStats{UsedBytes: new(uint64(1))}}}},
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
	assert.Equal(t, "eth0", pod.Network.Name, "stats-12")
	assert.Equal(t, "data", one(t, pod.VolumeStats).Name)
	main := one(t, pod.Containers)
	assert.Equal(t, time.Unix(999, 0), main.StartTime.Time)
	assert.EqualValues(t, 5, *main.CPU.UsageNanoCores)
	assert.EqualValues(t, 100, *main.Memory.AvailableBytes)
	assert.EqualValues(t, 8, *main.Swap.SwapUsageBytes)
	assert.EqualValues(t, 50, *main.Rootfs.UsedBytes)
	assert.EqualValues(t, 1000, *main.Rootfs.CapacityBytes)

	host := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, Pods: podFacts{hostNetwork: true},
	})
	summary, err = host.Summary(t.Context(), false)
	require.NoError(t, err)
	assert.Nil(t, one(t, summary.Pods).Network, "stats-12")
}

func TestCgroupsFillInMissingRuntimeStats(t *testing.T) { // stats-5, stats-13, stats-14
	s, p := web("u1")
	s.CPU, s.Memory, s.Processes = nil, nil, nil
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
		Pods: podFacts{cgroup: group},
	})
	summary, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	pod := one(t, summary.Pods)
	assert.EqualValues(t, 42, *pod.CPU.UsageCoreNanoSeconds)
	assert.EqualValues(t, 3, pod.CPU.PSI.Some.Avg10, "stats-14")
	assert.EqualValues(t, 20, *pod.Memory.WorkingSetBytes)
	assert.Nil(t, pod.Memory.AvailableBytes, "stats-5: no limit")
	assert.EqualValues(t, 6, *pod.Swap.SwapAvailableBytes)
	assert.EqualValues(t, 6, *pod.ProcessStats.ProcessCount)
	assert.EqualValues(t, 2, pod.IO.PSI.Full.Avg60)
	main := one(t, pod.Containers)
	assert.EqualValues(t, 42, *main.CPU.UsageCoreNanoSeconds)
	assert.EqualValues(t, 20, *main.Memory.WorkingSetBytes)

	for _, id := range []string{"", "crt://u1"} {
		own, err := c.CgroupStats("u1", id)
		require.NoError(t, err)
		assert.Equal(t, use, own)
	}
	_, err = c.CgroupStats("u1", "crt://else")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = collector(t, stats.Config{}).CgroupStats("u1", "")
	require.ErrorIs(t, err, os.ErrNotExist)

	// The cgroup has vanished: the values that are available without it.
	require.NoError(t, tree.Remove(t.Context(), group))
	gone := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, Cgroups: tree,
		Pods: podFacts{cgroup: group},
	})
	summary, err = gone.Summary(t.Context(), false)
	require.NoError(t, err)
	assert.Nil(t, one(t, summary.Pods).Memory)
}

func TestTheNewestOfOneNameCounts(t *testing.T) { // stats-7
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

func TestEphemeralStorage(t *testing.T) { // stats-10
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
	volume := func(name string, n uint64) []statsapi.VolumeStats {
		return []statsapi.VolumeStats{{Name: name, FsStats: statsapi.FsStats{UsedBytes: &n, InodesUsed: new(uint64(1))}}}
	}
	s, p := web("u1")
	c := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, NodeDir: dir,
		Pods: podFacts{
			paths: stats.Paths{Logs: filepath.Join(dir, "logs"), Hosts: hosts}, ephemeral: volume("empty", 100_000), persistent: volume("claim", 1<<40),
		},
	})
	summary, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	pod := one(t, summary.Pods)
	assert.EqualValues(t, 1200, *one(t, pod.Containers).Logs.UsedBytes)
	assert.InDelta(t, 50+1200+100_000+30+4, *pod.EphemeralStorage.UsedBytes, 4096, "the hosts file counts with its blocks")
	assert.EqualValues(t, 5+2+1+1+1, *pod.EphemeralStorage.InodesUsed)
	assert.EqualValues(t, 1000, *pod.EphemeralStorage.CapacityBytes)
}

// The size of termination message files is chosen by the containers, so it counts.
func TestTerminationMessagesAreEphemeralStorage(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	for path, size := range map[string]int{
		filepath.Join(dir, "main", "00000000"): 3 << 20, filepath.Join(dir, "main", "00000001"): 2 << 20, filepath.Join(dir, "init", "00000000"): 1 << 20,
		other: 64 << 20,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o644))
	}
	// Neither link targets nor sparse ranges count.
	require.NoError(t, os.Symlink(other, filepath.Join(dir, "main", "00000002")))
	require.NoError(t, os.Symlink(filepath.Dir(other), filepath.Join(dir, "linked")))
	sparse := filepath.Join(dir, "main", "00000003")
	require.NoError(t, os.WriteFile(sparse, nil, 0o644))
	if goruntime.GOOS == "linux" {
		require.NoError(t, os.Truncate(sparse, 1<<40))
	}
	s, p := web("u1")
	c := collector(t, stats.Config{
		Runtime: &crt{stats: []runtime.PodStats{s}, pods: []*runtime.Pod{p}}, NodeDir: dir,
		Pods: podFacts{paths: stats.Paths{Messages: dir}},
	})
	summary, err := c.Summary(t.Context(), false)
	require.NoError(t, err)
	used := one(t, summary.Pods).EphemeralStorage
	assert.InDelta(t, 50+6<<20, *used.UsedBytes, 64<<10)
	assert.EqualValues(t, 5+4, *used.InodesUsed)
}

// Fields that the runtime does not report come from the cgroup.
func TestCgroupsFillInFieldByField(t *testing.T) {
	s, p := web("u1")
	s.Memory = &runtime.MemoryUsage{At: time.Unix(1000, 0), WorkingSet: known(500)}
	s.CPU = &runtime.CPUUsage{At: time.Unix(1000, 0)} // a time and no values
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
		Pods: podFacts{cgroup: group},
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
	assert.EqualValues(t, 4, main.Memory.PSI.Some.Avg10, "stats-14: of a container, whatever its cgroup is called")
}

// finder names containers' cgroups unlike any driver.
type finder struct{ *cgroups.Tree }

func (f finder) ContainerStats(pod cgroups.Name, id string) (cgroups.Stats, error) {
	return f.Stats(pod.Child("main-of-" + id))
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
