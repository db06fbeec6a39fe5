package allocation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// NodeConstraints are the properties of a node that make resizes infeasible. With the zero value all
// are feasible.
type NodeConstraints struct {
	// NoResize is the reason why no resize is possible, such as missing support of the
	// runtime. Empty if resizes are possible.
	NoResize string

	// StaticCPU and StaticMemory report that a static CPU or memory manager assigns
	// exclusive resources to Guaranteed pods, which cannot be changed.
	StaticCPU, StaticMemory bool

	// Swaps reports whether a container may use swap. Its amount depends on the memory request
	// and cannot be changed. If nil, no container does.
	Swaps func(pod *v1.Pod, c *v1.Container) bool

	// Allocatable is the total of resources for pods. A larger request is infeasible.
	// Resources that it lacks are not checked.
	Allocatable v1.ResourceList
}

// Feasible returns the reason why a pod cannot be resized from the allocated to the desired
// resources on this node, or "" if it can.
func (n NodeConstraints) Feasible(desired, allocated *v1.Pod) string {
	if n.NoResize != "" {
		return n.NoResize
	}
	if n.Swaps != nil {
		for c := range resizable(&desired.Spec, true) {
			was := container(allocated, c.Name)
			if was != nil && changes(was, c, v1.ResourceMemory) && !restarts(c, v1.ResourceMemory) &&
				(n.Swaps(desired, c) || n.Swaps(allocated, was)) {
				return fmt.Sprintf("the memory of container %s, which may swap, cannot be resized without a restart", c.Name)
			}
		}
	}
	if guaranteed(desired) {
		if n.StaticCPU && touches(desired, allocated, v1.ResourceCPU) {
			return "the cpu of a Guaranteed pod cannot be resized under a static CPU manager"
		}
		if n.StaticMemory && touches(desired, allocated, v1.ResourceMemory) {
			return "the memory of a Guaranteed pod cannot be resized under a static memory manager"
		}
	}
	requests := helpers.PodRequests(desired, helpers.PodResourcesOptions{})
	for _, name := range computeNames {
		allocatable, ok := n.Allocatable[name]
		request := requests[name]
		if !ok || request.Cmp(allocatable) <= 0 {
			continue
		}
		requested, capacity := request.Value(), allocatable.Value()
		if name == v1.ResourceCPU {
			requested, capacity = request.MilliValue(), allocatable.MilliValue()
		}
		return fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d", name, requested, capacity)
	}
	return ""
}

// touches reports whether the resize changes a resource of a container or of the pod.
func touches(desired, allocated *v1.Pod, name v1.ResourceName) bool {
	for c := range resizable(&desired.Spec, true) {
		if was := container(allocated, c.Name); was != nil && changes(was, c, name) {
			return true
		}
	}
	var a, b v1.ResourceRequirements
	if r := desired.Spec.Resources; r != nil {
		a = *r
	}
	if r := allocated.Spec.Resources; r != nil {
		b = *r
	}
	return changed(&a, &b, name)
}

func changes(a, b *v1.Container, name v1.ResourceName) bool {
	return changed(&a.Resources, &b.Resources, name)
}

func changed(a, b *v1.ResourceRequirements, name v1.ResourceName) bool {
	x, y := a.Requests[name], b.Requests[name]
	l, m := a.Limits[name], b.Limits[name]
	_, bounded := a.Limits[name]
	_, too := b.Limits[name]
	return x.Cmp(y) != 0 || l.Cmp(m) != 0 || bounded != too
}

// restarts reports whether the resize policy of c requires a restart for the resource; the default
// does not.
func restarts(c *v1.Container, name v1.ResourceName) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == name {
			return p.RestartPolicy == v1.RestartContainer
		}
	}
	return false
}
