package stats

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime"
)

// userHz is the unit of CPU time in /proc: ticks per second, the same on all
// architectures.
const userHz = 100

// readNode reads the values of the node and its system containers.
func (c *Collector) readNode(n *statsapi.NodeStats, now time.Time) error {
	var errs []error
	n.SystemContainers = nil
	if c.cfg.Cgroups != nil {
		for _, name := range slices.Sorted(maps.Keys(c.cfg.System)) {
			s, err := c.cfg.Cgroups.Stats(c.cfg.System[name])
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, fmt.Errorf("stats: %s: %w", name, err))
				}
				continue
			}
			n.SystemContainers = append(n.SystemContainers, statsapi.ContainerStats{
				Name: name, StartTime: metav1.NewTime(c.started),
				CPU: c.cpuOf("system/"+name, s), Memory: memoryOf(s), Swap: swapOf(s), IO: ioOf(s),
			})
		}
	}
	if c.cfg.Root == nil {
		return errors.Join(errs...)
	}
	at := metav1.NewTime(now)
	mem := meminfo(c.text("proc/meminfo"))
	if total, ok := mem["MemTotal"]; ok {
		total -= min(mem["Hugetlb"], total) // huge pages cannot be used as other memory (stats-5)
		usage := total - min(mem["MemFree"], total)
		working := usage - min(mem["Inactive(file)"], usage)
		n.Memory = &statsapi.MemoryStats{
			Time: at, UsageBytes: &usage, WorkingSetBytes: &working, AvailableBytes: new(total - min(working, total)),
			RSSBytes: new(mem["AnonPages"]), PSI: c.pressure("memory"),
		}
		for line := range strings.Lines(c.text("proc/vmstat")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if count, err := strconv.ParseUint(value, 10, 64); err == nil {
				switch name {
				case "pgfault":
					n.Memory.PageFaults = &count
				case "pgmajfault":
					n.Memory.MajorPageFaults = &count
				}
			}
		}
	}
	if total, ok := mem["SwapTotal"]; ok {
		free := min(mem["SwapFree"], total)
		n.Swap = &statsapi.SwapStats{Time: at, SwapAvailableBytes: &free, SwapUsageBytes: new(total - free)}
	}
	if used, ok := cpuTime(c.text("proc/stat")); ok {
		n.CPU = &statsapi.CPUStats{Time: at, UsageCoreNanoSeconds: &used, UsageNanoCores: c.rates.of("node", now, used), PSI: c.pressure("cpu")}
	}
	if psi := c.pressure("io"); psi != nil {
		n.IO = &statsapi.IOStats{Time: at, PSI: psi}
	}
	n.Network = network(at, c.text("proc/net/dev"))
	n.Rlimit = c.rlimit(at)
	return errors.Join(errs...)
}

// text returns a file of the machine; "" if it cannot be read.
func (c *Collector) text(file string) string {
	text, err := fs.ReadFile(c.cfg.Root, file)
	if err != nil {
		return ""
	}
	return string(text)
}

// pressure reads /proc/pressure (stats-14).
func (c *Collector) pressure(of string) *statsapi.PSIStats {
	text := c.text("proc/pressure/" + of)
	if text == "" {
		return nil
	}
	psi, err := cgroups.ParsePSI([]byte(text))
	if err != nil {
		return nil
	}
	return psiOf(psi)
}

// rlimit returns the number of processes and its maximum.
func (c *Collector) rlimit(at metav1.Time) *statsapi.RlimitStats {
	r := &statsapi.RlimitStats{Time: at}
	for _, file := range []string{"proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max"} {
		if n, err := strconv.ParseInt(strings.TrimSpace(c.text(file)), 10, 64); err == nil && (r.MaxPID == nil || n < *r.MaxPID) {
			r.MaxPID = &n
		}
	}
	if fields := strings.Fields(c.text("proc/loadavg")); len(fields) > 3 {
		_, total, _ := strings.Cut(fields[3], "/")
		if n, err := strconv.ParseInt(total, 10, 64); err == nil {
			r.NumOfRunningProcesses = &n
		}
	}
	if r.MaxPID == nil && r.NumOfRunningProcesses == nil {
		return nil
	}
	return r
}

// meminfo returns the lines of /proc/meminfo in bytes.
func meminfo(text string) map[string]uint64 {
	out := map[string]uint64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 2 && fields[1] == "kB" {
			if n, err := strconv.ParseUint(fields[0], 10, 53); err == nil {
				out[name] = n << 10
			}
		}
	}
	return out
}

// cpuTime returns the CPU time of all CPUs in nanoseconds from /proc/stat, without idle
// and iowait; user includes guests.
func cpuTime(text string) (uint64, bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[0] != "cpu" {
			continue
		}
		var ticks uint64
		for i, field := range fields[1:min(len(fields), 9)] {
			n, err := strconv.ParseUint(field, 10, 53)
			if err != nil {
				return 0, false
			}
			if i != 3 && i != 4 {
				ticks += n
			}
		}
		return ticks * (1e9 / userHz), true
	}
	return 0, false
}

// podInterfaces are the prefixes of the node's ends of pod interfaces, whose number is
// unbounded.
var podInterfaces = []string{"veth", "docker", "nerdctl"}

// network parses /proc/net/dev without the interfaces of pods; eth0 is the default
// interface, as in the kubelet.
func network(at metav1.Time, text string) *statsapi.NetworkStats {
	out := &statsapi.NetworkStats{Time: at}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 11 || name == "lo" || slices.ContainsFunc(podInterfaces, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		number := func(i int) *uint64 {
			n, err := strconv.ParseUint(fields[i], 10, 64)
			if err != nil {
				return nil
			}
			return &n
		}
		i := statsapi.InterfaceStats{Name: name, RxBytes: number(0), RxErrors: number(2), TxBytes: number(8), TxErrors: number(10)}
		if name == "eth0" {
			out.InterfaceStats = i
		}
		out.Interfaces = append(out.Interfaces, i)
	}
	if len(out.Interfaces) == 0 {
		return nil
	}
	return out
}

// disks are the file systems that the runtime reports. Their free space is read
// separately.
type disks struct {
	known              bool // the runtime has reported them
	images, containers []runtime.FSUsage
	err                error
}

// disksAge is how long the file systems of images are cached. Their available space is read from the
// file systems themselves, for each summary; only the sizes of images and layers come from the runtime.
const disksAge = time.Minute

// disksOf returns the file systems of images. The caller must hold turn.
func (c *Collector) disksOf(ctx context.Context, now time.Time) disks {
	if !c.disks.known || now.Sub(c.disksAt) >= disksAge {
		c.disks, c.disksAt = c.findDisks(ctx), now
	}
	return c.disks
}

func (c *Collector) findDisks(ctx context.Context) (d disks) {
	if c.cfg.Runtime == nil {
		return d
	}
	if d.images, d.containers, d.err = c.cfg.Runtime.ImageFS(ctx); d.err != nil {
		d.err = fmt.Errorf("stats: file systems of images: %w", d.err)
	}
	d.known = d.err == nil
	return d
}

// readDisks reads the file systems of the node and of images. Those that cannot be read
// are absent.
func (c *Collector) readDisks(n *statsapi.NodeStats, of disks, now time.Time) error {
	var errs []error
	at := metav1.NewTime(now)
	n.Fs, n.Runtime = nil, nil
	if c.cfg.NodeDir != "" {
		disk, err := c.cfg.Disk(c.cfg.NodeDir)
		if err != nil {
			errs = append(errs, fmt.Errorf("stats: file system of %s: %w", c.cfg.NodeDir, err))
		} else {
			n.Fs = fsStats(at, disk)
		}
	}
	if !of.known {
		return errors.Join(errs...)
	}
	one := func(list []runtime.FSUsage) *statsapi.FsStats {
		if len(list) == 0 {
			return nil
		}
		disk, err := c.cfg.Disk(list[0].Mountpoint)
		if err != nil {
			errs = append(errs, fmt.Errorf("stats: file system %q of the runtime: %w", list[0].Mountpoint, err))
			return nil
		}
		s := fsStats(at, disk)
		s.UsedBytes, s.InodesUsed = list[0].Bytes, list[0].Inodes
		if s.InodesUsed == nil {
			s.InodesUsed = new(disk.InodesInUse)
		}
		return s
	}
	n.Runtime = &statsapi.RuntimeStats{ImageFs: one(of.images)}
	n.Runtime.ContainerFs = n.Runtime.ImageFs
	if len(of.containers) > 0 {
		n.Runtime.ContainerFs = one(of.containers)
	}
	return errors.Join(errs...)
}

func fsStats(at metav1.Time, d Disk) *statsapi.FsStats {
	return &statsapi.FsStats{
		Time: at, CapacityBytes: &d.Capacity, AvailableBytes: &d.Available, UsedBytes: &d.Used,
		Inodes: &d.Inodes, InodesFree: &d.InodesFree, InodesUsed: &d.InodesInUse,
	}
}

func (c *Collector) cpuOf(key string, s cgroups.Stats) *statsapi.CPUStats {
	if s.CPU == nil {
		return nil
	}
	return &statsapi.CPUStats{
		Time: metav1.NewTime(s.At), UsageCoreNanoSeconds: &s.CPU.UsageNanos,
		UsageNanoCores: c.rates.of(key, s.At, s.CPU.UsageNanos), PSI: psiOf(s.CPU.PSI),
	}
}

func memoryOf(s cgroups.Stats) *statsapi.MemoryStats {
	m := s.Memory
	if m == nil {
		return nil
	}
	out := &statsapi.MemoryStats{
		Time: metav1.NewTime(s.At), UsageBytes: &m.Usage, WorkingSetBytes: &m.WorkingSet, RSSBytes: &m.RSS,
		PageFaults: &m.Faults, MajorPageFaults: &m.Major, PSI: psiOf(m.PSI),
	}
	if m.Limit >= 0 && m.Limit < math.MaxInt64 { // without a limit nothing is reported as available
		out.AvailableBytes = new(uint64(m.Limit) - min(m.WorkingSet, uint64(m.Limit)))
	}
	return out
}

func swapOf(s cgroups.Stats) *statsapi.SwapStats {
	if s.Swap == nil {
		return nil
	}
	out := &statsapi.SwapStats{Time: metav1.NewTime(s.At), SwapUsageBytes: &s.Swap.Usage}
	if s.Swap.Limit >= 0 {
		out.SwapAvailableBytes = new(uint64(s.Swap.Limit) - min(s.Swap.Usage, uint64(s.Swap.Limit)))
	}
	return out
}

func ioOf(s cgroups.Stats) *statsapi.IOStats {
	if s.IO == nil || s.IO.PSI == nil {
		return nil // the API type has no other fields
	}
	return &statsapi.IOStats{Time: metav1.NewTime(s.At), PSI: psiOf(s.IO.PSI)}
}

func psiOf(p *cgroups.PSI) *statsapi.PSIStats {
	if p == nil {
		return nil
	}
	data := func(d cgroups.PSIData) statsapi.PSIData {
		total := uint64(math.MaxUint64)
		if d.TotalMicros < math.MaxUint64/1000 {
			total = d.TotalMicros * 1000
		}
		return statsapi.PSIData{Total: total, Avg10: d.Avg10, Avg60: d.Avg60, Avg300: d.Avg300}
	}
	return &statsapi.PSIStats{Some: data(p.Some), Full: data(p.Full)}
}
