package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

// containerMetrics are the metrics of /metrics/cadvisor (rule st-17).
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
	c.cpu = desc("Stats.Summary", "counter", "cpu_usage_seconds_total", "CPU time used, in core-seconds.", "cpu")
	c.workingSet = desc("Stats.Summary", "gauge", "memory_working_set_bytes", "Memory in use that cannot be reclaimed.")
	c.usage = desc("Stats.Summary", "gauge", "memory_usage_bytes", "Memory in use, including file cache.")
	c.rss = desc("Stats.Summary", "gauge", "memory_rss", "Anonymous memory, in bytes.")
	c.swap = desc("Stats.Summary", "gauge", "memory_swap", "Swap in use, in bytes.")
	c.faults = desc("Stats.Summary", "counter", "memory_failures_total", "Page faults.", "failure_type", "scope")
	c.processes = desc("Stats.Summary", "gauge", "processes", "Number of processes.")
	c.started = desc("Stats.Summary", "gauge", "start_time_seconds", "Start time, in Unix time.")
	c.lastSeen = desc("Stats.Summary", "gauge", "last_seen", "Time of the last measurement, in Unix time.")
	c.received = desc("Stats.Summary", "counter", "network_receive_bytes_total", "Bytes received.", "interface")
	c.receiveErrors = desc("Stats.Summary", "counter", "network_receive_errors_total", "Errors while receiving.", "interface")
	c.sent = desc("Stats.Summary", "counter", "network_transmit_bytes_total", "Bytes sent.", "interface")
	c.sendErrors = desc("Stats.Summary", "counter", "network_transmit_errors_total", "Errors while sending.", "interface")
	c.receivedPackets = desc("Root", "counter", "network_receive_packets_total", "Packets received.", "interface")
	c.receiveDropped = desc("Root", "counter", "network_receive_packets_dropped_total", "Received packets that were dropped.", "interface")
	c.sentPackets = desc("Root", "counter", "network_transmit_packets_total", "Packets sent.", "interface")
	c.sendDropped = desc("Root", "counter", "network_transmit_packets_dropped_total", "Packets that were dropped instead of sent.", "interface")
	c.fsUsage = desc("Stats.Summary", "gauge", "fs_usage_bytes", "Bytes used on the file system; of a container those of its writable layer.", "device")
	c.fsLimit = desc("Stats.Summary", "gauge", "fs_limit_bytes", "Size of the file system.", "device")
	c.fsInodes = desc("Stats.Summary", "gauge", "fs_inodes_total", "Total inodes of the file system.", "device")
	c.fsInodesFree = desc("Stats.Summary", "gauge", "fs_inodes_free", "Free inodes of the file system.", "device")
	for name, of := range map[string]*[2]*prometheus.Desc{"cpu": &c.cpuPressure, "io": &c.ioPressure, "memory": &c.memoryPressure} {
		of[0] = desc("Stats.Summary", "counter", "pressure_"+name+"_waiting_seconds_total", "Time in which at least one task was stalled.")
		of[1] = desc("Stats.Summary", "counter", "pressure_"+name+"_stalled_seconds_total", "Time in which all tasks were stalled.")
	}
	c.periods = desc("Stats.CgroupStats", "counter", "cpu_cfs_periods_total", "CPU quota periods.")
	c.throttled = desc("Stats.CgroupStats", "counter", "cpu_cfs_throttled_periods_total", "CPU quota periods in which tasks were throttled.")
	c.throttledTime = desc("Stats.CgroupStats", "counter", "cpu_cfs_throttled_seconds_total", "Time for which tasks were throttled.")
	c.cpuUser = desc("Stats.CgroupStats", "counter", "cpu_user_seconds_total", "CPU time used in user mode.")
	c.cpuSystem = desc("Stats.CgroupStats", "counter", "cpu_system_seconds_total", "CPU time used in the kernel.")
	c.cache = desc("Stats.CgroupStats", "gauge", "memory_cache", "File cache, in bytes.")
	c.mappedFile = desc("Stats.CgroupStats", "gauge", "memory_mapped_file", "Mapped file cache, in bytes.")
	c.activeFile = desc("Stats.CgroupStats", "gauge", "memory_total_active_file_bytes", "Active file cache, in bytes.")
	c.inactiveFile = desc("Stats.CgroupStats", "gauge", "memory_total_inactive_file_bytes", "Inactive file cache, in bytes.")
	c.kernel = desc("Stats.CgroupStats", "gauge", "memory_kernel_usage", "Kernel memory, in bytes.")
	c.peak = desc("Stats.CgroupStats", "gauge", "memory_max_usage_bytes", "Maximum memory usage; with cgroup v2 on Linux 5.19 and later.")
	c.limitHits = desc("Stats.CgroupStats", "counter", "memory_failcnt", "Number of times that the memory limit was reached.")
	c.oomEvents = desc("Stats.CgroupStats", "counter", "oom_events_total", "Processes that the kernel has killed because of memory.")
	c.threads = desc("Stats.CgroupStats", "gauge", "threads", "Number of threads.")
	c.threadsMax = desc("Stats.CgroupStats", "gauge", "threads_max", "Maximum number of threads.")
	c.fsRead = desc("Stats.CgroupStats", "counter", "fs_reads_bytes_total", "Bytes read from disks.", "device")
	c.fsReads = desc("Stats.CgroupStats", "counter", "fs_reads_total", "Reads from disks.", "device")
	c.fsWritten = desc("Stats.CgroupStats", "counter", "fs_writes_bytes_total", "Bytes written to disks.", "device")
	c.fsWrites = desc("Stats.CgroupStats", "counter", "fs_writes_total", "Writes to disks.", "device")
	c.quota = desc("Pods", "gauge", "spec_cpu_quota", "CPU quota of a period, in µs.")
	c.period = desc("Pods", "gauge", "spec_cpu_period", "CPU quota period, in µs.")
	c.shares = desc("Pods", "gauge", "spec_cpu_shares", "CPU shares; 1024 for each requested core.")
	c.memoryLimit = desc("Pods", "gauge", "spec_memory_limit_bytes", "Memory limit; 0 means no limit.")
	c.scrapeError = s.Desc("Sources.Stats.Summary", "container_scrape_error", "gauge", "1 if not all container metrics could be read.")
	machine := func(name, help string) *prometheus.Desc {
		return s.Desc("Sources.Machine", "machine_"+name, "gauge", help, "boot_id", "machine_id", "system_uuid")
	}
	c.cpus = machine("cpu_cores", "Number of logical CPUs.")
	c.cores = machine("cpu_physical_cores", "Number of physical cores.")
	c.sockets = machine("cpu_sockets", "Number of CPU sockets.")
	c.memory = machine("memory_bytes", "Memory of the machine.")
	c.machineSwap = machine("swap_bytes", "Swap of the machine.")
	c.machineError = s.Desc("Sources.Machine", "machine_scrape_error", "gauge", "1 if the machine could not be read.")
}

// machine sends the metrics of the machine.
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

// specOf returns the container of a pod with a name.
func specOf(pod *v1.Pod, name string) *v1.Container {
	if pod == nil {
		return nil
	}
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i]; c.Name == name {
			return (*v1.Container)(&c.EphemeralContainerCommon)
		}
	}
	return nil
}

// Units of CPU quotas and shares.
const (
	quotaPeriod  = 100_000 // µs
	sharesOfCore = 1024
	leastShares  = 2
)

// spec sends the limits of a container.
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
