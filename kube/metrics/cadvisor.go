package metrics

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime"
)

// A row is whose samples of /metrics/cadvisor they are: the node, a pod, or a
// container of one.
type row struct {
	id, name, image           string
	namespace, pod, container string
}

// rowLabels are the labels of a row, in this order.
var rowLabels = []string{"container", "id", "image", "name", "namespace", "pod"}

func (r row) labels(more ...string) []string {
	return append([]string{r.container, r.id, r.image, r.name, r.namespace, r.pod}, more...)
}

// A scrape is one of /metrics/cadvisor (st-17).
type scrape struct {
	c   *containerMetrics
	s   *Sources
	out sink

	wanted map[types.UID]*v1.Pod
	held   map[types.UID]*runtime.Pod
}

func (m *Metrics) collectCadvisor(ctx context.Context, s *Sources, out sink) {
	m.container.machine(s.Machine, out)
	var summary *statsapi.Summary
	var err error
	if s.Summary != nil {
		summary, err = s.Summary(ctx, false)
	}
	out.gauge(m.container.scrapeError, number(err != nil))
	if summary == nil {
		return
	}
	scrape := scrape{c: &m.container, s: s, out: out, wanted: map[types.UID]*v1.Pod{}, held: map[types.UID]*runtime.Pod{}}
	if s.Wanted != nil {
		for _, pod := range s.Wanted() {
			scrape.wanted[pod.UID] = pod
		}
	}
	if s.Held != nil {
		for _, pod := range s.Held() {
			scrape.held[pod.UID] = pod
		}
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
	s.disk(r, n.Fs)
	if known(n.StartTime) {
		s.out.gauge(s.c.started, seconds(n.StartTime.Time), r.labels()...)
	}
}

func (s *scrape) pod(p *statsapi.PodStats) {
	uid := types.UID(p.PodRef.UID)
	r := row{id: "/pod" + p.PodRef.UID, namespace: p.PodRef.Namespace, pod: p.PodRef.Name}
	if s.s.PodCgroup != nil {
		if name, ok := s.s.PodCgroup(uid); ok {
			r.id = name.String()
		}
	}
	s.usage(r, p.CPU, p.Memory, p.Swap, p.IO)
	s.network(r, p.Network)
	if known(p.StartTime) {
		s.out.gauge(s.c.started, seconds(p.StartTime.Time), r.labels()...)
	}
	if n := p.ProcessStats; n != nil && n.ProcessCount != nil {
		s.out.gauge(s.c.processes, float64(*n.ProcessCount), r.labels()...)
	}
	s.group(r, uid, "", false)
	for i := range p.Containers {
		s.container(r, uid, &p.Containers[i])
	}
}

func (s *scrape) container(of row, uid types.UID, c *statsapi.ContainerStats) {
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
	if _, bare, ok := strings.Cut(id, "://"); ok {
		r.name = bare
		r.id += "/" + bare
	} else {
		r.id += "/" + c.Name
	}
	spec := specOf(s.wanted[uid], c.Name)
	if spec != nil {
		r.image = spec.Image
	}
	s.usage(r, c.CPU, c.Memory, c.Swap, c.IO)
	s.disk(r, c.Rootfs)
	if known(c.StartTime) {
		s.out.gauge(s.c.started, seconds(c.StartTime.Time), r.labels()...)
	}
	if id != "" {
		s.group(r, uid, id, true)
	}
	if spec != nil {
		s.spec(r, spec)
	}
}

// usage sends what a row uses of CPUs and memory.
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
			if r.container != "" { // nothing is below it
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

// disk sends what a row has on its file system. Which device that is nobody says.
func (s *scrape) disk(r row, fs *statsapi.FsStats) {
	if fs == nil {
		return
	}
	labels, at := r.labels(""), fs.Time.Time
	s.level(s.c.fsUsage, at, fs.UsedBytes, labels)
	s.level(s.c.fsLimit, at, fs.CapacityBytes, labels)
	s.level(s.c.fsInodes, at, fs.Inodes, labels)
	s.level(s.c.fsInodesFree, at, fs.InodesFree, labels)
}

// group sends what only the cgroup of a row tells.
func (s *scrape) group(r row, uid types.UID, id string, leaf bool) {
	if s.s.Group == nil {
		return
	}
	g, _ := s.s.Group(uid, id) // a cgroup that has gone, or is read in part, is no news
	c, labels, at := s.c, r.labels(), g.At
	if g.CPU != nil && g.CPU.Periods > 0 {
		s.total(c.periods, at, &g.CPU.Periods, 1, labels)
		s.total(c.throttled, at, &g.CPU.Throttled, 1, labels)
		s.total(c.throttledTime, at, &g.CPU.ThrottledNanos, 1e-9, labels)
	}
	if g.Memory != nil {
		s.total(c.oomEvents, time.Time{}, &g.Memory.OOMKills, 1, labels) // oom-3
	}
	if g.Pids != nil && leaf {
		s.level(c.threads, at, &g.Pids.Current, labels)
		if g.Pids.Limit != cgroups.Unlimited {
			s.out.put(c.threadsMax, prometheus.GaugeValue, at, float64(g.Pids.Limit), labels)
		}
	}
	if g.IO != nil {
		device := r.labels("")
		s.total(c.fsRead, at, &g.IO.ReadBytes, 1, device)
		s.total(c.fsReads, at, &g.IO.Reads, 1, device)
		s.total(c.fsWritten, at, &g.IO.WriteBytes, 1, device)
		s.total(c.fsWrites, at, &g.IO.Writes, 1, device)
	}
}

// total sends a number that only grows, in the unit of its metric.
func (s *scrape) total(d *prometheus.Desc, at time.Time, n *uint64, unit float64, labels []string) {
	if n != nil {
		s.out.put(d, prometheus.CounterValue, at, float64(*n)*unit, labels)
	}
}

// level sends a number that comes and goes.
func (s *scrape) level(d *prometheus.Desc, at time.Time, n *uint64, labels []string) {
	if n != nil {
		s.out.put(d, prometheus.GaugeValue, at, float64(*n), labels)
	}
}
