package metrics

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime"
)

// A row has the labels of samples of /metrics/cadvisor: of the node, a pod, or a container.
type row struct {
	id, name, image           string
	namespace, pod, container string
}

// rowLabels are the labels of a row, in order.
var rowLabels = []string{"container", "id", "image", "name", "namespace", "pod"}

func (r row) labels(more ...string) []string {
	return append([]string{r.container, r.id, r.image, r.name, r.namespace, r.pod}, more...)
}

// A scrape is one scrape of /metrics/cadvisor (rule st-17).
type scrape struct {
	c   *containerMetrics
	s   *Sources
	out sink

	wanted map[types.UID]*v1.Pod
	held   map[types.UID]*runtime.Pod

	// Devices of the file systems of the node and of containers.
	nodeDisk, containerDisk string
	devices                 map[[2]uint32]string // names by device numbers, as far as they were read
}

func (m *Metrics) collectCadvisor(ctx context.Context, s *Sources, out sink) {
	m.container.machine(s.Machine, out)
	if s.PodMetrics != nil {
		if supported, err := s.PodMetrics.Collect(ctx, out); supported {
			out.gauge(m.container.scrapeError, number(err != nil))
			return
		}
	}
	var summary *statsapi.Summary
	var err error
	if s.Stats != nil {
		summary, err = s.Stats.Summary(ctx, false)
	}
	out.gauge(m.container.scrapeError, number(err != nil))
	if summary == nil {
		return
	}
	scrape := scrape{c: &m.container, s: s, out: out, wanted: map[types.UID]*v1.Pod{}, held: map[types.UID]*runtime.Pod{}, devices: map[[2]uint32]string{}}
	if s.Pods != nil {
		for _, pod := range s.Pods.Pods() {
			scrape.wanted[pod.UID] = pod
		}
	}
	if s.Runtime != nil {
		for _, pod := range s.Runtime.Pods() {
			scrape.held[pod.UID] = pod
		}
	}
	if s.Root != nil {
		mounts, _ := fs.ReadFile(s.Root, "proc/self/mountinfo") // if it cannot be read, they have no name
		node, containers := s.Stats.Dirs()
		scrape.nodeDisk, scrape.containerDisk = deviceOf(mounts, node), deviceOf(mounts, containers)
	}
	scrape.node(&summary.Node)
	for i := range summary.Pods {
		scrape.pod(&summary.Pods[i])
	}
}

func (s *scrape) node(n *statsapi.NodeStats) {
	r := row{id: "/"}
	s.usage(r, n.CPU, n.Memory, n.Swap, n.IO)
	s.network(r, n.Network)
	s.packets(r, "proc/net/dev")
	s.disk(r, s.nodeDisk, n.Fs)
	if known(n.StartTime) {
		s.out.gauge(s.c.started, seconds(n.StartTime.Time), r.labels()...)
	}
}

func (s *scrape) pod(p *statsapi.PodStats) {
	uid := types.UID(p.PodRef.UID)
	r := row{id: "/pod" + p.PodRef.UID, namespace: p.PodRef.Namespace, pod: p.PodRef.Name}
	if name, ok := s.s.Stats.Cgroup(uid); ok {
		r.id = name.String()
	}
	s.usage(r, p.CPU, p.Memory, p.Swap, p.IO)
	s.network(r, p.Network)
	if known(p.StartTime) {
		s.out.gauge(s.c.started, seconds(p.StartTime.Time), r.labels()...)
	}
	if n := p.ProcessStats; n != nil && n.ProcessCount != nil {
		s.out.gauge(s.c.processes, float64(*n.ProcessCount), r.labels()...)
	}
	s.cgroup(r, uid, "", false)
	inside := 0
	for i := range p.Containers {
		if pid := s.container(r, uid, &p.Containers[i]); inside == 0 {
			inside = pid
		}
	}
	if spec := s.wanted[uid]; inside != 0 && spec != nil && !spec.Spec.HostNetwork { // its containers share its network
		s.packets(r, fmt.Sprintf("proc/%d/net/dev", inside))
	}
}

// container sends the samples of a container. It returns the PID of one of its processes, 0
// if none is known.
func (s *scrape) container(of row, uid types.UID, c *statsapi.ContainerStats) (pid int) {
	r, id := of, ""
	r.container = c.Name
	if p := s.held[uid]; p != nil {
		for i := range p.Containers {
			if p.Containers[i].Name == c.Name { // the newest is the first
				id = p.Containers[i].ID
				break
			}
		}
	}
	if _, rest, ok := strings.Cut(id, "://"); ok {
		r.name = rest
		r.id += "/" + rest
	} else {
		r.id += "/" + c.Name
	}
	spec := specOf(s.wanted[uid], c.Name)
	if spec != nil {
		r.image = spec.Image
	}
	s.usage(r, c.CPU, c.Memory, c.Swap, c.IO)
	s.disk(r, s.containerDisk, c.Rootfs)
	if known(c.StartTime) {
		s.out.gauge(s.c.started, seconds(c.StartTime.Time), r.labels()...)
	}
	if id != "" {
		pid = s.cgroup(r, uid, id, true)
	}
	if spec != nil {
		s.spec(r, spec)
	}
	return pid
}

// usage sends the usage of CPU and memory of a row.
func (s *scrape) usage(r row, cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, swap *statsapi.SwapStats, io *statsapi.IOStats) {
	c, labels := s.c, r.labels()
	if cpu != nil {
		s.total(c.cpu, cpu.Time.Time, cpu.UsageCoreNanoSeconds, 1e-9, r.labels("total"))
		s.out.put(c.lastSeen, prometheus.GaugeValue, time.Time{}, seconds(cpu.Time.Time), labels)
		s.pressure(c.cpuPressure, cpu.Time.Time, cpu.PSI, labels)
	}
	if memory != nil {
		at := memory.Time.Time
		s.level(c.workingSet, at, memory.WorkingSetBytes, labels)
		s.level(c.usage, at, memory.UsageBytes, labels)
		s.level(c.rss, at, memory.RSSBytes, labels)
		for typ, n := range map[string]*uint64{"pgfault": memory.PageFaults, "pgmajfault": memory.MajorPageFaults} {
			s.total(c.faults, at, n, 1, r.labels(typ, "hierarchy"))
			if r.container != "" { // containers have no children
				s.total(c.faults, at, n, 1, r.labels(typ, "container"))
			}
		}
		s.pressure(c.memoryPressure, at, memory.PSI, labels)
	}
	if swap != nil {
		s.level(c.swap, swap.Time.Time, swap.SwapUsageBytes, labels)
	}
	if io != nil {
		s.pressure(c.ioPressure, io.Time.Time, io.PSI, labels)
	}
}

func (s *scrape) pressure(of [2]*prometheus.Desc, at time.Time, psi *statsapi.PSIStats, labels []string) {
	if psi != nil {
		s.total(of[0], at, &psi.Some.Total, 1e-9, labels)
		s.total(of[1], at, &psi.Full.Total, 1e-9, labels)
	}
}

func (s *scrape) network(r row, n *statsapi.NetworkStats) {
	if n == nil {
		return
	}
	all := n.Interfaces
	if len(all) == 0 {
		all = []statsapi.InterfaceStats{n.InterfaceStats}
	}
	for i := range all {
		labels, at := r.labels(all[i].Name), n.Time.Time
		s.total(s.c.received, at, all[i].RxBytes, 1, labels)
		s.total(s.c.receiveErrors, at, all[i].RxErrors, 1, labels)
		s.total(s.c.sent, at, all[i].TxBytes, 1, labels)
		s.total(s.c.sendErrors, at, all[i].TxErrors, 1, labels)
	}
}

// packets sends the counts of a /proc/net/dev that are not in the summary API.
func (s *scrape) packets(r row, file string) {
	if s.s.Root == nil {
		return
	}
	text, _ := fs.ReadFile(s.s.Root, file) // missing if the process has terminated
	for _, i := range interfaces(string(text)) {
		labels := r.labels(i.name)
		s.total(s.c.receivedPackets, time.Time{}, &i.received, 1, labels)
		s.total(s.c.receiveDropped, time.Time{}, &i.receiveDropped, 1, labels)
		s.total(s.c.sentPackets, time.Time{}, &i.sent, 1, labels)
		s.total(s.c.sendDropped, time.Time{}, &i.sendDropped, 1, labels)
	}
}

// disk sends the file system usage of a row.
func (s *scrape) disk(r row, device string, fs *statsapi.FsStats) {
	if fs == nil {
		return
	}
	labels, at := r.labels(device), fs.Time.Time
	s.level(s.c.fsUsage, at, fs.UsedBytes, labels)
	s.level(s.c.fsLimit, at, fs.CapacityBytes, labels)
	s.level(s.c.fsInodes, at, fs.Inodes, labels)
	s.level(s.c.fsInodesFree, at, fs.InodesFree, labels)
}

// cgroup sends the counters that only the cgroup of a row has. It returns the PID of one of
// its processes, 0 if none is known.
func (s *scrape) cgroup(r row, uid types.UID, id string, leaf bool) (pid int) {
	g, _ := s.s.Stats.CgroupStats(uid, id) // the cgroup may have been removed
	c, labels, at := s.c, r.labels(), g.At
	if g.CPU != nil {
		s.total(c.cpuUser, at, &g.CPU.UserNanos, 1e-9, labels)
		s.total(c.cpuSystem, at, &g.CPU.SystemNanos, 1e-9, labels)
	}
	if g.CPU != nil && g.CPU.Periods > 0 {
		s.total(c.periods, at, &g.CPU.Periods, 1, labels)
		s.total(c.throttled, at, &g.CPU.Throttled, 1, labels)
		s.total(c.throttledTime, at, &g.CPU.ThrottledNanos, 1e-9, labels)
	}
	if m := g.Memory; m != nil {
		s.total(c.oomEvents, time.Time{}, &m.OOMKills, 1, labels) // rule oom-3
		s.total(c.limitHits, at, &m.LimitHits, 1, labels)
		s.level(c.cache, at, &m.Cache, labels)
		s.level(c.mappedFile, at, &m.MappedFile, labels)
		s.level(c.activeFile, at, &m.ActiveFile, labels)
		s.level(c.inactiveFile, at, &m.InactiveFile, labels)
		s.level(c.kernel, at, &m.Kernel, labels)
		s.level(c.peak, at, m.Peak, labels)
	}
	if g.Pids != nil && leaf {
		s.level(c.threads, at, &g.Pids.Current, labels)
		if g.Pids.Limit != cgroups.Unlimited {
			s.out.put(c.threadsMax, prometheus.GaugeValue, at, float64(g.Pids.Limit), labels)
		}
		s.out.put(c.processes, prometheus.GaugeValue, at, float64(len(g.Pids.Processes)), labels)
		if len(g.Pids.Processes) > 0 {
			pid = g.Pids.Processes[0]
		}
	}
	if g.IO != nil {
		s.io(r, at, g.IO.Devices)
	}
	return pid
}

// io sends disk reads and writes. Devices without a name are summed up.
func (s *scrape) io(r row, at time.Time, of []cgroups.DeviceIO) {
	sums := map[string]cgroups.DeviceIO{}
	for _, d := range of {
		name := s.device(d.Major, d.Minor)
		sum := sums[name]
		sum.ReadBytes, sum.WriteBytes, sum.Reads, sum.Writes = sum.ReadBytes+d.ReadBytes, sum.WriteBytes+d.WriteBytes, sum.Reads+d.Reads, sum.Writes+d.Writes
		sums[name] = sum
	}
	for name, d := range sums {
		labels := r.labels(name)
		s.total(s.c.fsRead, at, &d.ReadBytes, 1, labels)
		s.total(s.c.fsReads, at, &d.Reads, 1, labels)
		s.total(s.c.fsWritten, at, &d.WriteBytes, 1, labels)
		s.total(s.c.fsWrites, at, &d.Writes, 1, labels)
	}
}

// device returns the name of a device, as cAdvisor does; "" if it is unknown or
// Sources.Root is nil.
func (s *scrape) device(major, minor uint32) string {
	numbers := [2]uint32{major, minor}
	name, known := s.devices[numbers]
	if !known {
		name = deviceName(s.s.Root, major, minor)
		s.devices[numbers] = name
	}
	return name
}

// total sends a counter, in the unit of its metric.
func (s *scrape) total(d *prometheus.Desc, at time.Time, n *uint64, unit float64, labels []string) {
	if n != nil {
		s.out.put(d, prometheus.CounterValue, at, float64(*n)*unit, labels)
	}
}

// level sends a gauge.
func (s *scrape) level(d *prometheus.Desc, at time.Time, n *uint64, labels []string) {
	if n != nil {
		s.out.put(d, prometheus.GaugeValue, at, float64(*n), labels)
	}
}
