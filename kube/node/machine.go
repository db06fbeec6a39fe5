package node

import (
	"context"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Machine says what a node has to give out (ns-12, ns-14).
type Machine struct {
	// Capacity is all there is: cpu, memory, hugepages-*, ephemeral-storage.
	Capacity func() (v1.ResourceList, error)

	// Allocatable is what of that is for pods. Nil: all of it.
	Allocatable func() (v1.ResourceList, error)

	// MaxPods is how many pods the node takes. Zero: as Capacity says.
	MaxPods int64

	// PodsPerCore limits the number of pods further. Zero: it does not.
	PodsPerCore int64

	// Devices are the extended resources of device plugins, with those that
	// are no longer there. Nil: there are none.
	Devices func() (capacity, allocatable v1.ResourceList, removed []string)
}

// Pods is how many pods a machine with that many cores takes (ns-12).
func Pods(cores, podsPerCore, maxPods int64) int64 {
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
			delete(s.Capacity, name) // hugepages of a size that is gone (ns-3)
		}
	}
	maps.Copy(s.Capacity, capacity)
	if m.MaxPods > 0 {
		cores := capacity.Cpu().Value()
		s.Capacity[v1.ResourcePods] = *resource.NewQuantity(Pods(cores, m.PodsPerCore, m.MaxPods), resource.DecimalSI)
	}
	var devices v1.ResourceList
	if m.Devices != nil {
		given, allocatable, removed := m.Devices()
		maps.Copy(s.Capacity, given)
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

// setAllocatable sets what pods can have: as much as is there, or less.
func (m Machine) setAllocatable(s *v1.NodeStatus, less v1.ResourceList) {
	if s.Allocatable == nil {
		s.Allocatable = v1.ResourceList{}
	}
	for name := range s.Allocatable {
		if _, is := s.Capacity[name]; !is && extended(name) {
			delete(s.Allocatable, name) // ns-14
		}
	}
	for name, has := range s.Capacity {
		value := has.DeepCopy()
		if l, ok := less[name]; ok && l.Cmp(value) < 0 {
			value = l.DeepCopy()
		}
		if value.Sign() < 0 {
			value.Set(0)
		}
		s.Allocatable[name] = value
	}
}

// extended says whether a resource is one that the node itself does not know.
func extended(name v1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
