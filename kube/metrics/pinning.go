package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type pinningMetrics struct {
	cpu, cpuErrors           prometheus.Counter
	shared, exclusive        prometheus.Gauge
	memory, memoryErrors     prometheus.Counter
	topology, topologyErrors prometheus.Counter
	admission                prometheus.Observer
}

func (p *pinningMetrics) declare(s *family.Set) {
	const pinned, pool, remembered, admitted = "cpu.Hooks.Pinned", "cpu.Hooks.Pool", "memory.Hooks.Pinned", "topology.Hooks.Admitted"
	p.cpu = s.Counter(pinned, "kubelet_cpu_manager_pinning_requests_total", "Requests for exclusive CPUs.")
	p.cpuErrors = s.Counter(pinned, "kubelet_cpu_manager_pinning_errors_total", "Requests for exclusive CPUs that failed.")
	p.shared = s.Gauge(pool, "kubelet_cpu_manager_shared_pool_size_millicores", "Size of the shared CPU pool, in millicores.")
	p.exclusive = s.Gauge(pool, "kubelet_cpu_manager_exclusive_cpu_allocation_count", "Number of exclusively allocated CPUs.")
	p.memory = s.Counter(remembered, "kubelet_memory_manager_pinning_requests_total", "Requests for memory of NUMA nodes.")
	p.memoryErrors = s.Counter(remembered, "kubelet_memory_manager_pinning_errors_total", "Requests for memory of NUMA nodes that failed.")
	p.topology = s.Counter(admitted, "kubelet_topology_manager_admission_requests_total", "Admissions by the topology manager.")
	p.topologyErrors = s.Counter(admitted, "kubelet_topology_manager_admission_errors_total", "Pods that the topology manager has rejected.")
	p.admission = s.Histogram(admitted, "kubelet_topology_manager_admission_duration_ms", "Duration of admissions by the topology manager, in milliseconds.", exponential(.05, 2, 15))
}

// CPU returns the hooks of a cpu.Manager (rule cpu-10).
func (m *Metrics) CPU() cpu.Hooks {
	p := &m.pinning
	return cpu.Hooks{
		Pinned: func(i cpu.PinInfo) { count(p.cpu, p.cpuErrors, i.Error) },
		Pool: func(i cpu.PoolInfo) {
			p.shared.Set(float64(i.Shared.Size()) * 1000)
			p.exclusive.Set(float64(i.Exclusive.Size()))
		},
	}
}

// Memory returns the hooks of a memory.Manager.
func (m *Metrics) Memory() memory.Hooks {
	p := &m.pinning
	return memory.Hooks{Pinned: func(i memory.PinInfo) { count(p.memory, p.memoryErrors, i.Error) }}
}

// Topology returns the hooks of a topology.Manager (rule top-7).
func (m *Metrics) Topology() topology.Hooks {
	p := &m.pinning
	return topology.Hooks{Admitted: func(i topology.AdmitInfo) {
		count(p.topology, p.topologyErrors, i.Error)
		p.admission.Observe(float64(i.Took.Microseconds()) / 1000)
	}}
}
