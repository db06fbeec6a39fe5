package allocation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A stepKind is the target of a [ResizeStep].
type stepKind int

// The kinds of steps.
const (
	podLimit      stepKind = iota // the limit of the pod's cgroup
	podRequest                    // the request of the pod's cgroup: weight, protected memory
	containerStep                 // request and limit of a container
)

func (k stepKind) String() string {
	switch k {
	case podLimit:
		return "pod limit"
	case podRequest:
		return "pod request"
	default:
		return "container"
	}
}

// A ResizeStep is one change of a resize: of the request or the limit of the pod's cgroup, or of both
// of a container.
type ResizeStep struct {
	kind stepKind

	// Resource that changes: memory or cpu.
	Resource v1.ResourceName

	// Container is the name of the container. Empty for the pod's cgroup.
	Container string

	// Before and After are all cpu and memory resources of the container or the pod's cgroup
	// before and after the step, as the runtime's API requires them. They must not be
	// modified.
	Before, After v1.ResourceRequirements
}

// String describes the step: "container web: memory 64Mi/128Mi to 64Mi/256Mi",
// with request and limit.
func (s ResizeStep) String() string {
	show := func(r *v1.ResourceRequirements) string {
		text := func(list v1.ResourceList) string {
			if q, ok := list[s.Resource]; ok {
				return q.String()
			}
			return "-"
		}
		return text(r.Requests) + "/" + text(r.Limits)
	}
	target := s.kind.String()
	if s.Container != "" {
		target += " " + s.Container
	}
	return fmt.Sprintf("%s: %s %s to %s", target, s.Resource, show(&s.Before), show(&s.After))
}

// PlanResize returns the steps, in order, that change a running pod from its actuated resources (see
// [Actuated]) to the allocated ones. It is a pure function of the pod with both sets of resources
// and of the running containers; others have the allocated resources when they start.
//
// For memory first, then for cpu (rule al-16): increase the pod's limit, increase its request,
// decrease containers, increase containers, decrease the pod's request, decrease its limit. The
// pod's cgroup is therefore never smaller than the sum of its containers, unless it was before.
//
// The removal of a limit is not applied. A new limit counts as a decrease. A container without a
// limit inherits that of the pod. A container that must be restarted for its resize must not be
// in observed: the planner kills it.
func PlanResize(actuated, allocated *v1.Pod, observed *runtime.PodStatus) []ResizeStep {
	allocated = keepLimits(actuated, allocated)
	before, after := cgroupOf(actuated), cgroupOf(allocated)
	var changes []ResizeStep
	for c := range resizable(&actuated.Spec, true) {
		if to := container(allocated, c.Name); to != nil && running(observed, c.Name) != nil {
			changes = append(changes, ResizeStep{kind: containerStep, Container: c.Name, Before: effective(actuated, c), After: effective(allocated, to)})
		}
	}

	var steps []ResizeStep
	pod := func(kind stepKind, name v1.ResourceName, up bool) {
		next := *before.DeepCopy()
		if kind == podLimit && up == more(before.Limits, after.Limits, name) {
			set(&next.Limits, after.Limits, name)
		} else if kind == podRequest && up == less(before.Requests, after.Requests, name) {
			set(&next.Requests, after.Requests, name)
		}
		if !EqualResources(&before, &next) {
			steps = append(steps, ResizeStep{kind: kind, Resource: name, Before: before, After: next})
			before = next
		}
	}
	for _, name := range computeNames {
		pod(podLimit, name, true)
		pod(podRequest, name, true)
		var down, up []ResizeStep
		for i := range changes {
			c := &changes[i]
			one := *c
			one.Resource, one.After = name, *c.Before.DeepCopy()
			set(&one.After.Requests, c.After.Requests, name)
			set(&one.After.Limits, c.After.Limits, name)
			switch {
			case EqualResources(&one.Before, &one.After):
				continue
			case one.grows():
				up = append(up, one)
			default:
				down = append(down, one)
			}
			c.Before = one.After // the next resource starts from this state
		}
		steps = append(append(steps, down...), up...)
		pod(podRequest, name, false)
		pod(podLimit, name, false)
	}
	return steps
}

// grows reports whether the step increases the limit, or the request with an unchanged limit.
func (s *ResizeStep) grows() bool {
	if more(s.Before.Limits, s.After.Limits, s.Resource) {
		return true
	}
	return !more(s.After.Limits, s.Before.Limits, s.Resource) && less(s.Before.Requests, s.After.Requests, s.Resource)
}

// more reports whether the limit is higher in b than in a. A missing limit is the highest.
func more(a, b v1.ResourceList, name v1.ResourceName) bool {
	x, bounded := a[name]
	y, ok := b[name]
	return bounded && (!ok || x.Cmp(y) < 0)
}

// less reports whether the request is lower in a than in b. A missing request is zero.
func less(a, b v1.ResourceList, name v1.ResourceName) bool {
	x, y := a[name], b[name]
	return x.Cmp(y) < 0
}

// set copies one resource of from to list.
func set(list *v1.ResourceList, from v1.ResourceList, name v1.ResourceName) {
	if q, ok := from[name]; ok {
		put(list, name, q)
	} else {
		delete(*list, name)
	}
}

// ComputeResources returns a copy of the cpu and memory resources of r, which can change while a container
// runs.
func ComputeResources(r *v1.ResourceRequirements) v1.ResourceRequirements {
	var out v1.ResourceRequirements
	for _, name := range computeNames {
		set(&out.Requests, r.Requests, name)
		set(&out.Limits, r.Limits, name)
	}
	return out
}

// effective returns the cpu and memory resources of a container, with the limits of the pod where
// it has none.
func effective(pod *v1.Pod, c *v1.Container) v1.ResourceRequirements {
	r := ComputeResources(&c.Resources)
	if pod.Spec.Resources == nil {
		return r
	}
	for _, name := range computeNames {
		if q, ok := pod.Spec.Resources.Limits[name]; ok {
			if _, own := r.Limits[name]; !own {
				put(&r.Limits, name, q)
			}
		}
	}
	return r
}

// cgroupOf returns the cpu and memory resources of a pod's cgroup: the sum of its containers and
// overhead, or its pod-level resources. It has a limit only if every container or the pod has
// one.
func cgroupOf(pod *v1.Pod) v1.ResourceRequirements {
	all := v1.ResourceRequirements{
		Requests: helpers.PodRequests(pod, helpers.PodResourcesOptions{}),
		Limits:   helpers.PodLimits(pod, helpers.PodResourcesOptions{}),
	}
	r := ComputeResources(&all)
	for _, name := range computeNames {
		if pod.Spec.Resources != nil {
			if _, ok := pod.Spec.Resources.Limits[name]; ok {
				continue
			}
		}
		for c := range resizable(&pod.Spec, true) {
			if _, ok := c.Resources.Limits[name]; !ok {
				delete(r.Limits, name)
			}
		}
	}
	return r
}

// keepLimits returns allocated with the limits of actuated that it lacks, because a limit cannot be removed. A
// container that inherits the limit of the pod has that one.
func keepLimits(actuated, allocated *v1.Pod) *v1.Pod {
	keep := func(old, r *v1.ResourceRequirements, inherits func(v1.ResourceName) bool) *v1.ResourceRequirements {
		kept := *r
		for _, name := range computeNames {
			if q, ok := old.Limits[name]; ok {
				if _, ok := r.Limits[name]; !ok && !inherits(name) {
					kept = *kept.DeepCopy()
					put(&kept.Limits, name, q)
				}
			}
		}
		return &kept
	}
	view := desiredResources(allocated, true)
	for c := range resizable(&actuated.Spec, true) {
		if to, ok := view.Containers[c.Name]; ok {
			inherits := func(name v1.ResourceName) bool {
				return podspec.Inherits(allocated, container(allocated, c.Name), name)
			}
			view.Containers[c.Name] = *keep(&c.Resources, &to, inherits)
		}
	}
	if old := actuated.Spec.Resources; old != nil {
		if view.Pod == nil {
			view.Pod = new(v1.ResourceRequirements)
		}
		view.Pod = keep(old, view.Pod, func(v1.ResourceName) bool { return false })
	}
	return view.Apply(allocated)
}

// container returns the named container if it can be resized, or nil.
func container(pod *v1.Pod, name string) *v1.Container {
	for c := range resizable(&pod.Spec, true) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
