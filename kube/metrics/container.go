package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

// containerMetrics are those of /metrics/cadvisor (st-17).
type containerMetrics struct {
	cpu, periods, throttled, throttledTime            *prometheus.Desc
	workingSet, usage, rss, swap, faults, oomEvents   *prometheus.Desc
	processes, threads, threadsMax, started, lastSeen *prometheus.Desc
	received, receiveErrors, sent, sendErrors         *prometheus.Desc
	receivedPackets, receiveDropped                   *prometheus.Desc
	sentPackets, sendDropped                          *prometheus.Desc
	cpuUser, cpuSystem                                *prometheus.Desc
	cache, mappedFile, activeFile, inactiveFile       *prometheus.Desc
	kernel, peak, limitHits                           *prometheus.Desc
	fsUsage, fsLimit, fsInodes, fsInodesFree          *prometheus.Desc
	fsRead, fsReads, fsWritten, fsWrites              *prometheus.Desc
	cpuPressure, memoryPressure, ioPressure           [2]*prometheus.Desc // some, full
	quota, period, shares, memoryLimit                *prometheus.Desc
	scrapeError                                       *prometheus.Desc

	cpus, cores, sockets, memory, machineSwap, machineError *prometheus.Desc
}

func (c *containerMetrics) declare(s *family.Set) {
	desc := func(from, typ, name, help string, more ...string) *prometheus.Desc {
		return s.Desc("Sources."+from, "container_"+name, typ, help, append(append([]string{}, rowLabels...), more...)...)
	}
	c.cpu = desc("Summary", "counter", "cpu_usage_seconds_total", "CPU time that was used, in core-seconds.", "cpu")
	c.workingSet = desc("Summary", "gauge", "memory_working_set_bytes", "Memory in use that can't be taken away.")
	c.usage = desc("Summary", "gauge", "memory_usage_bytes", "Memory in use, file cache included.")
	c.rss = desc("Summary", "gauge", "memory_rss", "Anonymous memory, in bytes.")
	c.swap = desc("Summary", "gauge", "memory_swap", "Swap in use, in bytes.")
	c.faults = desc("Summary", "counter", "memory_failures_total", "Page faults.", "failure_type", "scope")
	c.processes = desc("Summary", "gauge", "processes", "Processes in it.")
	c.started = desc("Summary", "gauge", "start_time_seconds", "When it was started, in Unix time.")
	c.lastSeen = desc("Summary", "gauge", "last_seen", "When it was last measured, in Unix time.")
	c.received = desc("Summary", "counter", "network_receive_bytes_total", "Bytes that came in.", "interface")
	c.receiveErrors = desc("Summary", "counter", "network_receive_errors_total", "Errors on what came in.", "interface")
	c.sent = desc("Summary", "counter", "network_transmit_bytes_total", "Bytes that went out.", "interface")
	c.sendErrors = desc("Summary", "counter", "network_transmit_errors_total", "Errors on what went out.", "interface")
	c.receivedPackets = desc("Root", "counter", "network_receive_packets_total", "Packets that came in.", "interface")
	c.receiveDropped = desc("Root", "counter", "network_receive_packets_dropped_total", "Packets that came in and were dropped.", "interface")
	c.sentPackets = desc("Root", "counter", "network_transmit_packets_total", "Packets that went out.", "interface")
	c.sendDropped = desc("Root", "counter", "network_transmit_packets_dropped_total", "Packets that were to go out and were dropped.", "interface")
	c.fsUsage = desc("Summary", "gauge", "fs_usage_bytes", "What it has on its file system: a container in its writable layer.", "device")
	c.fsLimit = desc("Summary", "gauge", "fs_limit_bytes", "Size of its file system.", "device")
	c.fsInodes = desc("Summary", "gauge", "fs_inodes_total", "Inodes that its file system can have.", "device")
	c.fsInodesFree = desc("Summary", "gauge", "fs_inodes_free", "Inodes that are left on its file system.", "device")
	for name, of := range map[string]*[2]*prometheus.Desc{"cpu": &c.cpuPressure, "io": &c.ioPressure, "memory": &c.memoryPressure} {
		of[0] = desc("Summary", "counter", "pressure_"+name+"_waiting_seconds_total", "Time in which some task had to wait.")
		of[1] = desc("Summary", "counter", "pressure_"+name+"_stalled_seconds_total", "Time in which all tasks had to wait.")
	}
	c.periods = desc("Group", "counter", "cpu_cfs_periods_total", "Periods with a quota of CPU time.")
	c.throttled = desc("Group", "counter", "cpu_cfs_throttled_periods_total", "Periods in which the quota of CPU time was used up.")
	c.throttledTime = desc("Group", "counter", "cpu_cfs_throttled_seconds_total", "For how long tasks were held back because the quota of CPU time was used up.")
	c.cpuUser = desc("Group", "counter", "cpu_user_seconds_total", "CPU time that was used in programs.")
	c.cpuSystem = desc("Group", "counter", "cpu_system_seconds_total", "CPU time that was used in the kernel.")
	c.cache = desc("Group", "gauge", "memory_cache", "File cache, in bytes.")
	c.mappedFile = desc("Group", "gauge", "memory_mapped_file", "File cache that processes have mapped, in bytes.")
	c.activeFile = desc("Group", "gauge", "memory_total_active_file_bytes", "File cache that goes last when memory is short.")
	c.inactiveFile = desc("Group", "gauge", "memory_total_inactive_file_bytes", "File cache that goes first when memory is short.")
	c.kernel = desc("Group", "gauge", "memory_kernel_usage", "Memory that the kernel uses for it, in bytes.")
	c.peak = desc("Group", "gauge", "memory_max_usage_bytes", "Most memory that was in use at once; of cgroup v2 from Linux 5.19 on.")
	c.limitHits = desc("Group", "counter", "memory_failcnt", "How often the limit of memory was met.")
	c.oomEvents = desc("Group", "counter", "oom_events_total", "Processes that the kernel killed for memory.")
	c.threads = desc("Group", "gauge", "threads", "Threads in the container.")
	c.threadsMax = desc("Group", "gauge", "threads_max", "Threads that it may have.")
	c.fsRead = desc("Group", "counter", "fs_reads_bytes_total", "Bytes that were read from disks.", "device")
	c.fsReads = desc("Group", "counter", "fs_reads_total", "Reads from disks.", "device")
	c.fsWritten = desc("Group", "counter", "fs_writes_bytes_total", "Bytes that were written to disks.", "device")
	c.fsWrites = desc("Group", "counter", "fs_writes_total", "Writes to disks.", "device")
	c.quota = desc("Wanted", "gauge", "spec_cpu_quota", "CPU time that it may use in a period, in µs.")
	c.period = desc("Wanted", "gauge", "spec_cpu_period", "The period of its quota, in µs.")
	c.shares = desc("Wanted", "gauge", "spec_cpu_shares", "Its share of the CPUs when they are all busy; 1024 is one core that was asked for.")
	c.memoryLimit = desc("Wanted", "gauge", "spec_memory_limit_bytes", "Memory that it may use; 0: any amount.")
	c.scrapeError = s.Desc("Sources.Summary", "container_scrape_error", "gauge", "1 if not all of this could be had.")
	machine := func(name, help string) *prometheus.Desc {
		return s.Desc("Sources.Machine", "machine_"+name, "gauge", help, "boot_id", "machine_id", "system_uuid")
	}
	c.cpus = machine("cpu_cores", "CPUs, as the kernel counts them.")
	c.cores = machine("cpu_physical_cores", "Cores of the machine.")
	c.sockets = machine("cpu_sockets", "Sockets of the machine.")
	c.memory = machine("memory_bytes", "Memory of the machine.")
	c.machineSwap = machine("swap_bytes", "Swap of the machine.")
	c.machineError = s.Desc("Sources.Machine", "machine_scrape_error", "gauge", "1 if nothing is known of the machine.")
}

// machine tells what the node has.
func (c *containerMetrics) machine(has Machine, out sink) {
	out.gauge(c.machineError, number(has.CPUs == 0))
	for _, of := range []struct {
		desc  *prometheus.Desc
		value float64
	}{
		{c.cpus, float64(has.CPUs)}, {c.cores, float64(has.Cores)}, {c.sockets, float64(has.Sockets)},
		{c.memory, float64(has.Memory)}, {c.machineSwap, float64(has.Swap)},
	} {
		if of.value > 0 || of.desc == c.machineSwap && has.CPUs > 0 {
			out.gauge(of.desc, of.value, has.BootID, has.MachineID, has.SystemUUID)
		}
	}
}

// specOf finds a container of a pod by its name.
func specOf(pod *v1.Pod, name string) *v1.Container {
	if pod == nil {
		return nil
	}
	return podspec.Container(pod, name)
}

// The kernel's and the kubelet's ways to count CPU time.
const (
	quotaPeriod  = 100_000 // µs
	sharesOfCore = 1024
	leastShares  = 2
)

// spec tells what a container was promised.
func (s *scrape) spec(r row, c *v1.Container) {
	labels := r.labels()
	cpu := c.Resources.Requests.Cpu().MilliValue()
	limit := c.Resources.Limits.Cpu().MilliValue()
	if cpu == 0 {
		cpu = limit
	}
	s.out.gauge(s.c.period, quotaPeriod, labels...)
	s.out.gauge(s.c.shares, float64(max(cpu*sharesOfCore/1000, leastShares)), labels...)
	if limit > 0 {
		s.out.gauge(s.c.quota, float64(limit*quotaPeriod/1000), labels...)
	}
	s.out.gauge(s.c.memoryLimit, float64(c.Resources.Limits.Memory().Value()), labels...)
}
