package node

import (
	"context"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Machine has the resources of a node (rules ns-12, ns-14).
type Machine struct {
	// Capacity returns the resources of the machine: cpu, memory, hugepages-*,
	// ephemeral-storage.
	Capacity func() (v1.ResourceList, error)

	// Allocatable returns the part of the capacity that is available to pods. Nil: all of
	// it.
	Allocatable func() (v1.ResourceList, error)

	// MaxPods is the maximum number of pods. Zero: that of Capacity.
	MaxPods int64

	// PodsPerCore limits the number of pods further. Zero: no limit.
	PodsPerCore int64

	// Devices returns the extended resources of device plugins, and the names of resources
	// that no longer exist. Nil: there are none.
	Devices func() (capacity, allocatable v1.ResourceList, removed []string)

	// NoEphemeralStorage makes a node ready whose Capacity has no ephemeral-storage
	// (localStorageCapacityIsolation: false).
	NoEphemeralStorage bool
}

// podCapacity returns the maximum number of pods of a machine with a number of cores (rule ns-12).
func podCapacity(cores, podsPerCore, maxPods int64) int64 {
	if podsPerCore > 0 {
		return min(cores*podsPerCore, maxPods)
	}
	return maxPods
}

func (m Machine) set(_ context.Context, d *Draft) error {
	s := &d.Node.Status
	if s.Capacity == nil {
		s.Capacity = v1.ResourceList{}
	}
	capacity, err := m.Capacity()
	if err != nil {
		s.Capacity[v1.ResourceCPU] = *resource.NewMilliQuantity(0, resource.DecimalSI)
		s.Capacity[v1.ResourceMemory] = resource.MustParse("0Gi")
		s.Capacity[v1.ResourcePods] = *resource.NewQuantity(m.MaxPods, resource.DecimalSI)
		m.setAllocatable(s, nil)
		return err
	}
	for name := range s.Capacity {
		if _, is := capacity[name]; !is && !extended(name) && name != v1.ResourcePods {
			delete(s.Capacity, name) // hugepages of a size that no longer exists (rule ns-3)
		}
	}
	maps.Copy(s.Capacity, capacity)
	if m.MaxPods > 0 {
		cores := capacity.Cpu().Value()
		s.Capacity[v1.ResourcePods] = *resource.NewQuantity(podCapacity(cores, m.PodsPerCore, m.MaxPods), resource.DecimalSI)
	}
	var devices v1.ResourceList
	if m.Devices != nil {
		available, allocatable, removed := m.Devices()
		maps.Copy(s.Capacity, available)
		for _, name := range removed {
			s.Capacity[v1.ResourceName(name)] = *resource.NewQuantity(0, resource.DecimalSI)
		}
		devices = allocatable
	}
	var allocatable v1.ResourceList
	if m.Allocatable != nil {
		allocatable, err = m.Allocatable()
	}
	m.setAllocatable(s, allocatable)
	maps.Copy(s.Allocatable, devices)
	return err
}

// setAllocatable sets the allocatable resources: the capacity, or the lower amounts of
// limits.
func (m Machine) setAllocatable(s *v1.NodeStatus, limits v1.ResourceList) {
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
