package node

import (
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Machine has the resources of a node (rules ns-12, ns-14).
type Machine struct {
	// Capacity are the resources of the machine: cpu, memory, hugepages-*,
	// ephemeral-storage. Nil: they are unknown, and reported as zero.
	Capacity v1.ResourceList

	// Allocatable is the part of the capacity that is available to pods. Nil: all of it.
	Allocatable v1.ResourceList

	// MaxPods is the maximum number of pods. Zero: that of Capacity.
	MaxPods int64

	// PodsPerCore limits the number of pods further. Zero: no limit.
	PodsPerCore int64

	// Devices and HealthyDevices are the extended resources of device plugins, and
	// RemovedDevices the names of those that no longer exist.
	Devices, HealthyDevices v1.ResourceList
	RemovedDevices          []string
}

// podCapacity returns the maximum number of pods of a machine with a number of cores (rule ns-12).
func podCapacity(cores, podsPerCore, maxPods int64) int64 {
	if podsPerCore > 0 {
		return min(cores*podsPerCore, maxPods)
	}
	return maxPods
}

func (m *Machine) set(s *v1.NodeStatus) {
	if s.Capacity == nil {
		s.Capacity = v1.ResourceList{}
	}
	if m.Capacity == nil {
		s.Capacity[v1.ResourceCPU] = *resource.NewMilliQuantity(0, resource.DecimalSI)
		s.Capacity[v1.ResourceMemory] = resource.MustParse("0Gi")
		s.Capacity[v1.ResourcePods] = *resource.NewQuantity(m.MaxPods, resource.DecimalSI)
		m.setAllocatable(s, nil)
		return
	}
	for name := range s.Capacity {
		if _, is := m.Capacity[name]; !is && !extended(name) && name != v1.ResourcePods {
			delete(s.Capacity, name) // hugepages of a size that no longer exists (rule ns-3)
		}
	}
	maps.Copy(s.Capacity, m.Capacity)
	if m.MaxPods > 0 {
		cores := m.Capacity.Cpu().Value()
		s.Capacity[v1.ResourcePods] = *resource.NewQuantity(podCapacity(cores, m.PodsPerCore, m.MaxPods), resource.DecimalSI)
	}
	maps.Copy(s.Capacity, m.Devices)
	for _, name := range m.RemovedDevices {
		s.Capacity[v1.ResourceName(name)] = *resource.NewQuantity(0, resource.DecimalSI)
	}
	m.setAllocatable(s, m.Allocatable)
	maps.Copy(s.Allocatable, m.HealthyDevices)
}

// setAllocatable sets the allocatable resources: the capacity, or the lower amounts of
// limits.
func (m *Machine) setAllocatable(s *v1.NodeStatus, limits v1.ResourceList) {
	if s.Allocatable == nil {
		s.Allocatable = v1.ResourceList{}
	}
	for name := range s.Allocatable {
		if _, is := s.Capacity[name]; !is {
			delete(s.Allocatable, name) // rule ns-14
		}
	}
	for name, has := range s.Capacity {
		value := has.DeepCopy()
		if l, ok := limits[name]; ok && l.Cmp(value) < 0 {
			value = l.DeepCopy()
		}
		if value.Sign() < 0 {
			value.Set(0)
		}
		s.Allocatable[name] = value
	}
}

// extended reports whether a resource is an extended resource.
func extended(name v1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
