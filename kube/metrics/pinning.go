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

	allocations, allocationErrors, assignments *prometheus.CounterVec // of CPUs and memory
}

func (p *pinningMetrics) declare(s *family.Set) {
	const pinned, pool, remembered, admitted = "cpu.Hooks.Pinned", "cpu.Hooks.Pool", "memory.Hooks.Pinned", "topology.Hooks.Admitted"
	p.cpu = s.Counter(pinned, "kubelet_cpu_manager_pinning_requests_total", "Requests for exclusive CPUs.")
	p.cpuErrors = s.Counter(pinned, "kubelet_cpu_manager_pinning_errors_total", "Requests for exclusive CPUs that failed.")
	p.shared = s.Gauge(pool, "kubelet_cpu_manager_shared_pool_size_millicores", "Size of the shared CPU pool, in millicores.")
	p.exclusive = s.Gauge(pool, "kubelet_cpu_manager_exclusive_cpu_allocation_count", "Number of exclusively allocated CPUs.")
	p.memory = s.Counter(remembered, "kubelet_memory_manager_pinning_requests_total", "Requests for memory of NUMA nodes.")
	p.memoryErrors = s.Counter(remembered, "kubelet_memory_manager_pinning_errors_total", "Requests for memory of NUMA nodes that failed.")
	p.allocations = s.Counters(pinned, "kubelet_resource_manager_allocations_total", "Containers with allocated resources, by whether these are a part of their pod's.", "resource_name", "source")
	p.allocationErrors = s.Counters(pinned, "kubelet_resource_manager_allocation_errors_total", "Allocations that failed, by whether they were for a pod as a whole.", "resource_name", "source")
	p.assignments = s.Counters(pinned, "kubelet_resource_manager_container_assignments_total", "Containers with allocated resources, by who uses these.", "resource_name", "assignment_type")
	p.topology = s.Counter(admitted, "kubelet_topology_manager_admission_requests_total", "Admissions by the topology manager.")
	p.topologyErrors = s.Counter(admitted, "kubelet_topology_manager_admission_errors_total", "Pods that the topology manager has rejected.")
	p.admission = s.Histogram(admitted, "kubelet_topology_manager_admission_duration_ms", "Duration of admissions by the topology manager, in milliseconds.", exponential(.05, 2, 15))
}

// assigned counts an allocation in the metrics that a kubelet has with the gate PodLevelResourceManagers.
func (p *pinningMetrics) assigned(resource string, how topology.Assignment, err error) {
	source := "pod"
	if how == topology.NodeExclusive {
		source = "node"
	}
	if err != nil {
		p.allocationErrors.WithLabelValues(resource, source).Inc()
		return
	}
	p.allocations.WithLabelValues(resource, source).Inc()
	p.assignments.WithLabelValues(resource, string(how)).Inc()
}

// CPUAssignments returns the hooks of a cpu.Manager for metrics that a kubelet only has with the feature gate
// PodLevelResourceManagers: kubelet_resource_manager_*.
func (m *Metrics) CPUAssignments() cpu.Hooks {
	return cpu.Hooks{Pinned: func(i cpu.PinInfo) { m.pinning.assigned("cpu", i.Assignment, i.Error) }}
}

// MemoryAssignments is CPUAssignments for a memory.Manager.
func (m *Metrics) MemoryAssignments() memory.Hooks {
	return memory.Hooks{Pinned: func(i memory.PinInfo) { m.pinning.assigned("memory", i.Assignment, i.Error) }}
}

// CPU returns the hooks of a cpu.Manager (rule cpu-10).
func (m *Metrics) CPU() cpu.Hooks {
	p := &m.pinning
	return cpu.Hooks{
		Pinned: func(i cpu.PinInfo) {
			if i.Assignment != topology.PodShared {
				count(p.cpu, p.cpuErrors, i.Error)
			}
		},
		Pool: func(i cpu.PoolInfo) {
			p.shared.Set(float64(i.Shared.Size()) * 1000)
			p.exclusive.Set(float64(i.Exclusive.Size()))
		},
	}
}

// Memory returns the hooks of a memory.Manager.
func (m *Metrics) Memory() memory.Hooks {
	p := &m.pinning
	return memory.Hooks{Pinned: func(i memory.PinInfo) {
		if i.Assignment != topology.PodShared {
			count(p.memory, p.memoryErrors, i.Error)
		}
	}}
}

// Topology returns the hooks of a topology.Manager (rule top-7).
func (m *Metrics) Topology() topology.Hooks {
	p := &m.pinning
	return topology.Hooks{Admitted: func(i topology.AdmitInfo) {
		count(p.topology, p.topologyErrors, i.Error)
		p.admission.Observe(float64(i.Took.Microseconds()) / 1000)
	}}
}
