package stats

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime"
)

// readPods reads the usage of pods from the runtime, and missing values from their
// cgroups.
func (c *Collector) readPods(ctx context.Context, node *statsapi.FsStats) ([]statsapi.PodStats, error) {
	if c.cfg.Runtime == nil {
		return nil, nil
	}
	list, err := c.cfg.Runtime.PodStats(ctx)
	if err != nil {
		return nil, fmt.Errorf("stats: pods: %w", err)
	}
	there, err := c.cfg.Runtime.Pods(ctx)
	if err != nil {
		return nil, fmt.Errorf("stats: pods: %w", err)
	}
	known := make(map[types.UID]*runtime.Pod, len(there))
	for _, p := range there {
		known[p.UID] = p
	}
	var out []statsapi.PodStats
	for _, s := range newest(list, known) {
		out = append(out, c.pod(s, known[s.UID], node))
	}
	slices.SortFunc(out, func(a, b statsapi.PodStats) int {
		return cmp.Or(strings.Compare(a.PodRef.Namespace, b.PodRef.Namespace), strings.Compare(a.PodRef.Name, b.PodRef.Name), strings.Compare(a.PodRef.UID, b.PodRef.UID))
	})
	return out, nil
}

// newest returns one entry per pod, that of the newest sandbox, with the newest container
// of each name.
func newest(list []runtime.PodStats, known map[types.UID]*runtime.Pod) []runtime.PodStats {
	at := map[types.UID]int{}
	var out []runtime.PodStats
	for _, s := range list {
		s.Containers = newestContainers(s.Containers, known[s.UID])
		i, again := at[s.UID]
		switch {
		case !again:
			at[s.UID] = len(out)
			out = append(out, s)
		case sandboxAge(known[s.UID], s.SandboxID) < sandboxAge(known[s.UID], out[i].SandboxID):
			out[i] = s
		}
	}
	return out
}

// sandboxAge returns the index of a sandbox among those of its pod, newest first.
func sandboxAge(p *runtime.Pod, id string) int {
	if p == nil {
		return 0
	}
	i := slices.IndexFunc(p.Sandboxes, func(s runtime.Sandbox) bool { return s.ID == id })
	if i < 0 {
		return len(p.Sandboxes)
	}
	return i
}

func newestContainers(list []runtime.ContainerStats, p *runtime.Pod) []runtime.ContainerStats {
	at := map[string]int{}
	var out []runtime.ContainerStats
	for _, s := range list {
		i, again := at[s.Name]
		switch {
		case s.Name == "": // of the sandbox itself
		case !again:
			at[s.Name] = len(out)
			out = append(out, s)
		case created(p, s.ID).After(created(p, out[i].ID)):
			out[i] = s
		}
	}
	return out
}

func created(p *runtime.Pod, id string) time.Time {
	if p != nil {
		for i := range p.Containers {
			if p.Containers[i].ID == id {
				return p.Containers[i].CreatedAt
			}
		}
	}
	return time.Time{}
}

// pod returns the stats of one pod.
func (c *Collector) pod(s runtime.PodStats, p *runtime.Pod, node *statsapi.FsStats) statsapi.PodStats {
	out := statsapi.PodStats{
		PodRef:     statsapi.PodReference{Name: s.Name, Namespace: s.Namespace, UID: string(s.UID)},
		Containers: make([]statsapi.ContainerStats, 0, len(s.Containers)),
	}
	if p != nil {
		out.StartTime = metav1.NewTime(p.CreatedAt)
		if i := sandboxAge(p, s.SandboxID); s.SandboxID != "" && i < len(p.Sandboxes) {
			out.StartTime = metav1.NewTime(p.Sandboxes[i].CreatedAt)
		}
	}
	var group cgroups.Stats
	name, hasGroup := c.cfg.Pods.Cgroup(s.UID)
	if hasGroup = hasGroup && c.cfg.Cgroups != nil; hasGroup {
		if read, err := c.cfg.Cgroups.Stats(name); err == nil {
			group = read
		}
	}
	key := "pod/" + string(s.UID)
	out.CPU = fillCPU(c.cpu(key, s.CPU), c.cpuOf(key+"/group", group))
	out.Memory = fillMemory(memory(s.Memory), memoryOf(group))
	out.Swap, out.IO = swapOf(group), ioOf(group)
	if n := s.Processes; n != nil {
		out.ProcessStats = &statsapi.ProcessStats{ProcessCount: n}
	} else if group.Pids != nil {
		out.ProcessStats = &statsapi.ProcessStats{ProcessCount: &group.Pids.Current}
	}
	if !c.cfg.Pods.HostNetwork(s.UID) { // stats-12
		out.Network = networkOf(s)
	}
	paths := c.cfg.Pods.Paths(s.Namespace, s.Name, s.UID)
	for _, container := range s.Containers {
		out.Containers = append(out.Containers, c.container(container, p, name, hasGroup, paths.Logs, node))
	}
	slices.SortFunc(out.Containers, func(a, b statsapi.ContainerStats) int { return strings.Compare(a.Name, b.Name) })
	ephemeral, persistent := c.cfg.Pods.VolumeStats(s.UID)
	out.VolumeStats = slices.Concat(ephemeral, persistent)
	out.EphemeralStorage = c.ephemeral(&out, ephemeral, paths, node)
	return out
}

func (c *Collector) container(s runtime.ContainerStats, p *runtime.Pod, pod cgroups.Name, hasGroup bool, logs string, node *statsapi.FsStats) statsapi.ContainerStats {
	out := statsapi.ContainerStats{Name: s.Name, StartTime: metav1.NewTime(created(p, s.ID))}
	var group cgroups.Stats
	if hasGroup {
		if read, err := c.containerGroup(pod, s.ID); err == nil {
			group = read
		}
	}
	key := "container/" + s.ID
	out.CPU = fillCPU(c.cpu(key, s.CPU), c.cpuOf(key+"/group", group))
	out.Memory = fillMemory(memory(s.Memory), memoryOf(group))
	out.IO = ioOf(group)
	if s.Swap != nil {
		out.Swap = &statsapi.SwapStats{Time: metav1.NewTime(s.Swap.At), SwapAvailableBytes: s.Swap.Available, SwapUsageBytes: s.Swap.Usage}
	} else {
		out.Swap = swapOf(group)
	}
	if w := s.WritableLayer; w != nil {
		out.Rootfs = &statsapi.FsStats{Time: metav1.NewTime(w.At), UsedBytes: w.Bytes, InodesUsed: w.Inodes}
		if w.Mountpoint != "" {
			if disk, err := c.cfg.Disk(w.Mountpoint); err == nil {
				onDisk(out.Rootfs, fsStats(out.Rootfs.Time, disk))
			}
		}
	}
	if logs != "" {
		if bytes, inodes, err := files(filepath.Join(logs, s.Name)); err == nil {
			out.Logs = &statsapi.FsStats{Time: metav1.Now(), UsedBytes: &bytes, InodesUsed: &inodes}
			onDisk(out.Logs, node)
		}
	}
	return out
}

// onDisk adds the values of the file system that contains s.
func onDisk(s, disk *statsapi.FsStats) {
	if disk != nil {
		s.CapacityBytes, s.AvailableBytes, s.Inodes, s.InodesFree = disk.CapacityBytes, disk.AvailableBytes, disk.Inodes, disk.InodesFree
	}
}

// ephemeral returns the pod's usage of the node's disk: writable layers, logs, ephemeral
// volumes, hosts file and termination messages.
func (c *Collector) ephemeral(p *statsapi.PodStats, volumes []statsapi.VolumeStats, paths Paths, node *statsapi.FsStats) *statsapi.FsStats {
	var bytes, inodes uint64
	add := func(s *statsapi.FsStats) {
		if s != nil && s.UsedBytes != nil {
			bytes += *s.UsedBytes
		}
		if s != nil && s.InodesUsed != nil {
			inodes += *s.InodesUsed
		}
	}
	for i := range p.Containers {
		add(p.Containers[i].Rootfs)
		add(p.Containers[i].Logs)
	}
	for i := range volumes {
		add(&volumes[i].FsStats)
	}
	if paths.Logs != "" {
		if b, n, err := files(paths.Logs); err == nil {
			bytes, inodes = bytes+b, inodes+n
		}
	}
	if paths.Hosts != "" {
		if info, err := os.Lstat(paths.Hosts); err == nil && info.Mode().IsRegular() {
			bytes, inodes = bytes+stored(info), inodes+1
		}
	}
	if paths.Messages != "" {
		if b, n, err := messages(paths.Messages); err == nil {
			bytes, inodes = bytes+b, inodes+n
		}
	}
	out := &statsapi.FsStats{Time: metav1.Now(), UsedBytes: &bytes, InodesUsed: &inodes}
	onDisk(out, node)
	return out
}

// cpu converts CPU usage of the runtime. If the runtime reports no rate, it is calculated
// from the last two samples.
func (c *Collector) cpu(key string, u *runtime.CPUUsage) *statsapi.CPUStats {
	if u == nil {
		return nil
	}
	out := &statsapi.CPUStats{Time: metav1.NewTime(u.At), UsageCoreNanoSeconds: u.CoreNanos, UsageNanoCores: u.NanoCores}
	if out.UsageNanoCores == nil && u.CoreNanos != nil {
		out.UsageNanoCores = c.rates.of(key, u.At, *u.CoreNanos)
	}
	return out
}

func memory(u *runtime.MemoryUsage) *statsapi.MemoryStats {
	if u == nil {
		return nil
	}
	out := &statsapi.MemoryStats{
		Time: metav1.NewTime(u.At), UsageBytes: u.Usage, WorkingSetBytes: u.WorkingSet, AvailableBytes: u.Available,
		RSSBytes: u.RSS, PageFaults: u.Faults, MajorPageFaults: u.MajorFaults,
	}
	if out.UsageBytes == nil && out.WorkingSetBytes == nil {
		return nil
	}
	return out
}

func networkOf(s runtime.PodStats) *statsapi.NetworkStats {
	if len(s.Network) == 0 {
		return nil
	}
	out := &statsapi.NetworkStats{Time: metav1.NewTime(s.NetworkAt)}
	for i, n := range s.Network {
		one := statsapi.InterfaceStats{Name: n.Name, RxBytes: n.RxBytes, RxErrors: n.RxErrors, TxBytes: n.TxBytes, TxErrors: n.TxErrors}
		if i == 0 {
			out.InterfaceStats = one
		}
		out.Interfaces = append(out.Interfaces, one)
	}
	return out
}

// containerGroup reads the cgroup of a container, which is below that of its pod.
func (c *Collector) containerGroup(pod cgroups.Name, id string) (cgroups.Stats, error) {
	_, bare, _ := strings.Cut(id, "://")
	return c.cfg.Cgroups.ContainerStats(pod, bare)
}

// fillCPU returns the runtime's values, or those of the cgroup where the runtime has
// none. A rate and its total are from the same source.
func fillCPU(runtime, group *statsapi.CPUStats) *statsapi.CPUStats {
	switch {
	case runtime == nil || group == nil:
		return or(runtime, group)
	case runtime.UsageCoreNanoSeconds == nil && runtime.UsageNanoCores == nil:
		return group
	}
	runtime.PSI = or(runtime.PSI, group.PSI)
	return runtime
}

// fillMemory returns the runtime's values, and those of the cgroup for fields that the
// runtime does not report.
func fillMemory(runtime, group *statsapi.MemoryStats) *statsapi.MemoryStats {
	if runtime == nil || group == nil {
		return or(runtime, group)
	}
	runtime.WorkingSetBytes = or(runtime.WorkingSetBytes, group.WorkingSetBytes)
	runtime.AvailableBytes = or(runtime.AvailableBytes, group.AvailableBytes)
	runtime.UsageBytes = or(runtime.UsageBytes, group.UsageBytes)
	runtime.RSSBytes = or(runtime.RSSBytes, group.RSSBytes)
	runtime.PageFaults = or(runtime.PageFaults, group.PageFaults)
	runtime.MajorPageFaults = or(runtime.MajorPageFaults, group.MajorPageFaults)
	runtime.PSI = or(runtime.PSI, group.PSI)
	return runtime
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// Cgroup returns the name of the cgroup of a pod; false if it has none.
func (c *Collector) Cgroup(uid types.UID) (cgroups.Name, bool) { return c.cfg.Pods.Cgroup(uid) }

// CgroupStats returns the current usage of the cgroup of a pod, or of one of its containers if
// containerID is not empty, with values that Summary does not contain such as throttling.
// It returns fs.ErrNotExist if there is no cgroup.
func (c *Collector) CgroupStats(uid types.UID, containerID string) (cgroups.Stats, error) {
	name, ok := c.cfg.Pods.Cgroup(uid)
	if !ok || c.cfg.Cgroups == nil {
		return cgroups.Stats{}, fmt.Errorf("stats: pod %s has no cgroup: %w", uid, fs.ErrNotExist)
	}
	if containerID != "" {
		return c.containerGroup(name, containerID)
	}
	return c.cfg.Cgroups.Stats(name)
}

// Dirs returns directories on the file systems in Summary: of the node, and of the
// writable layers of containers as the runtime last reported it; "" if unknown.
func (c *Collector) Dirs() (node, containers string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached != nil {
		for _, list := range [][]runtime.FSUsage{c.cached.disks.containers, c.cached.disks.images} {
			if len(list) > 0 && containers == "" {
				containers = list[0].Mountpoint
			}
		}
	}
	return c.cfg.NodeDir, containers
}
