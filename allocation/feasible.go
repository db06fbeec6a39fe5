package allocation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// NodeFacts are what makes a resize impossible on a node (al-10). The zero
// value makes none.
type NodeFacts struct {
	// NoResize is why nothing can be resized in place here: a runtime that
	// cannot, a policy. Empty: it can be.
	NoResize string

	// StaticCPU and StaticMemory: a static CPU or memory manager gives
	// Guaranteed pods what is theirs alone, and cannot change it.
	StaticCPU, StaticMemory bool

	// Swaps reports whether a container of a pod may use swap, the amount of
	// which follows from its memory request (cm-42) and cannot be changed.
	// Nil: nobody swaps.
	Swaps func(pod *v1.Pod, c *v1.Container) bool

	// Allocatable is what the node has for all pods together. What asks for
	// more will never fit. What is not listed is not checked.
	Allocatable v1.ResourceList
}

// Feasible returns why pod cannot be resized on this node from what it was
// granted to what it asks for, or "" if it can.
func (n NodeFacts) Feasible(desired, granted *v1.Pod) string {
	if n.NoResize != "" {
		return n.NoResize
	}
	if n.Swaps != nil {
		for c := range resizable(&desired.Spec, true) {
			was := container(granted, c.Name)
			if was != nil && changes(was, c, v1.ResourceMemory) && !restarts(c, v1.ResourceMemory) &&
				(n.Swaps(desired, c) || n.Swaps(granted, was)) {
				return fmt.Sprintf("the memory of container %s, which may swap, cannot be resized without a restart", c.Name)
			}
		}
	}
	if guaranteed(desired) {
		if n.StaticCPU && touches(desired, granted, v1.ResourceCPU) {
			return "the cpu of a Guaranteed pod cannot be resized under a static CPU manager"
		}
		if n.StaticMemory && touches(desired, granted, v1.ResourceMemory) {
			return "the memory of a Guaranteed pod cannot be resized under a static memory manager"
		}
	}
	wants := helpers.PodRequests(desired, helpers.PodResourcesOptions{})
	for _, name := range computeNames {
		has, known := n.Allocatable[name]
		want := wants[name]
		if !known || want.Cmp(has) <= 0 {
			continue
		}
		asked, capacity := want.Value(), has.Value()
		if name == v1.ResourceCPU {
			asked, capacity = want.MilliValue(), has.MilliValue()
		}
		return fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d", name, asked, capacity)
	}
	return ""
}

// touches reports whether the resize changes a resource of any container, or of
// the pod as a whole.
func touches(desired, granted *v1.Pod, name v1.ResourceName) bool {
	for c := range resizable(&desired.Spec, true) {
		if was := container(granted, c.Name); was != nil && changes(was, c, name) {
			return true
		}
	}
	var a, b v1.ResourceRequirements
	if r := desired.Spec.Resources; r != nil {
		a = *r
	}
	if r := granted.Spec.Resources; r != nil {
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

// restarts reports whether c is to be restarted for a change of that resource
// (al-15); without a policy it is not.
func restarts(c *v1.Container, name v1.ResourceName) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == name {
			return p.RestartPolicy == v1.RestartContainer
		}
	}
	return false
}
