package allocation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/runtime"
)

// A StepKind says what a [Step] changes.
type StepKind int

// The kinds of steps.
const (
	PodLimit      StepKind = iota // the limit of the pod's cgroup
	PodRequest                    // its request: weight, protected memory
	ContainerStep                 // both of one container
)

// String returns the kind in lower case: "pod limit".
func (k StepKind) String() string {
	switch k {
	case PodLimit:
		return "pod limit"
	case PodRequest:
		return "pod request"
	case ContainerStep:
		return "container"
	default:
		return fmt.Sprintf("step kind %d", int(k))
	}
}

// A Step is one change on the way from what a pod has to what it was granted.
type Step struct {
	Kind StepKind

	// Resource that changes: memory or cpu. All else stays as it is.
	Resource v1.ResourceName

	// Container by name; empty for the pod.
	Container string

	// Before and After are the cpu and memory of the container or the pod's
	// cgroup before and after the step, in full, as the calls of a runtime
	// take them. Before is what to go back to (al-17). Shared: don't change
	// them.
	Before, After v1.ResourceRequirements
}

// String describes the step: "container web: memory 64Mi/128Mi to 64Mi/256Mi",
// with request and limit.
func (s Step) String() string {
	show := func(r *v1.ResourceRequirements) string {
		text := func(list v1.ResourceList) string {
			if q, ok := list[s.Resource]; ok {
				return q.String()
			}
			return "-"
		}
		return text(r.Requests) + "/" + text(r.Limits)
	}
	what := s.Kind.String()
	if s.Container != "" {
		what += " " + s.Container
	}
	return fmt.Sprintf("%s: %s %s to %s", what, s.Resource, show(&s.Before), show(&s.After))
}

// Steps returns what has to be done, in this order, to take a running pod from
// what it has (see [Actuated]) to what it was granted. It is a pure function of
// two views of one pod and of which containers run; the others get what was
// granted when they start.
//
// For memory first, then for cpu (al-16): the pod's limit goes up, its request
// goes up, containers get less, containers get more, the pod's request goes
// down, its limit goes down. Hence a pod's cgroup is never narrower than what
// its containers have been given, unless it was before (cm-43).
//
// A limit that goes away stays (al-19). One that is new narrows what was
// without bound, and counts as a decrease. A container without a limit of its
// own follows that of the pod (cm-33). One that has to be restarted for its
// resize (al-15) does not belong in here: the planner kills it, and observed is
// then to be without it.
func Steps(has, granted *v1.Pod, observed *runtime.PodStatus) []Step {
	granted = keepLimits(has, granted)
	before, after := cgroupOf(has), cgroupOf(granted)
	var changes []Step
	for c := range resizable(&has.Spec, true) {
		if to := container(granted, c.Name); to != nil && running(observed, c.Name) != nil {
			changes = append(changes, Step{Kind: ContainerStep, Container: c.Name, Before: effective(has, c), After: effective(granted, to)})
		}
	}

	var steps []Step
	pod := func(kind StepKind, name v1.ResourceName, up bool) {
		next := *before.DeepCopy()
		if kind == PodLimit && up == more(before.Limits, after.Limits, name) {
			set(&next.Limits, after.Limits, name)
		} else if kind == PodRequest && up == less(before.Requests, after.Requests, name) {
			set(&next.Requests, after.Requests, name)
		}
		if !Equal(&before, &next) {
			steps = append(steps, Step{Kind: kind, Resource: name, Before: before, After: next})
			before = next
		}
	}
	for _, name := range computeNames {
		pod(PodLimit, name, true)
		pod(PodRequest, name, true)
		var down, up []Step
		for i := range changes {
			c := &changes[i]
			one := *c
			one.Resource, one.After = name, *c.Before.DeepCopy()
			set(&one.After.Requests, c.After.Requests, name)
			set(&one.After.Limits, c.After.Limits, name)
			switch {
			case Equal(&one.Before, &one.After):
				continue
			case one.grows():
				up = append(up, one)
			default:
				down = append(down, one)
			}
			c.Before = one.After // the next resource goes on from here
		}
		steps = append(append(steps, down...), up...)
		pod(PodRequest, name, false)
		pod(PodLimit, name, false)
	}
	return steps
}

// grows reports whether the step gives more: by the limit, and where that stays
// by the request.
func (s *Step) grows() bool {
	if more(s.Before.Limits, s.After.Limits, s.Resource) {
		return true
	}
	return !more(s.After.Limits, s.Before.Limits, s.Resource) && less(s.Before.Requests, s.After.Requests, s.Resource)
}

// more reports whether the limit is higher in b than in a. None is the highest.
func more(a, b v1.ResourceList, name v1.ResourceName) bool {
	x, bounded := a[name]
	y, ok := b[name]
	return bounded && (!ok || x.Cmp(y) < 0)
}

// less reports whether the request is lower in a than in b. None is zero.
func less(a, b v1.ResourceList, name v1.ResourceName) bool {
	x, y := a[name], b[name]
	return x.Cmp(y) < 0
}

// set makes one resource of list what it is in from.
func set(list *v1.ResourceList, from v1.ResourceList, name v1.ResourceName) {
	if q, ok := from[name]; ok {
		put(list, name, q)
	} else {
		delete(*list, name)
	}
}

// Compute returns the cpu and memory of r alone, in lists of their own: what can
// change while a container runs (al-1).
func Compute(r *v1.ResourceRequirements) v1.ResourceRequirements {
	var out v1.ResourceRequirements
	for _, name := range computeNames {
		set(&out.Requests, r.Requests, name)
		set(&out.Limits, r.Limits, name)
	}
	return out
}

// effective returns the cpu and memory of a container with the limits of the
// pod where it has none of its own (cm-33).
func effective(pod *v1.Pod, c *v1.Container) v1.ResourceRequirements {
	r := Compute(&c.Resources)
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

// cgroupOf returns the cpu and memory of a pod's cgroup: what its containers
// and its overhead come to, or what it has as a whole. It has a limit only if
// every container has one, or the pod has (cm-13).
func cgroupOf(pod *v1.Pod) v1.ResourceRequirements {
	all := v1.ResourceRequirements{
		Requests: helpers.PodRequests(pod, helpers.PodResourcesOptions{}),
		Limits:   helpers.PodLimits(pod, helpers.PodResourcesOptions{}),
	}
	r := Compute(&all)
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

// keepLimits returns granted with the limits of has where it has none (al-19).
func keepLimits(has, granted *v1.Pod) *v1.Pod {
	keep := func(old, r *v1.ResourceRequirements) *v1.ResourceRequirements {
		kept := *r
		for _, name := range computeNames {
			if q, ok := old.Limits[name]; ok {
				if _, ok := r.Limits[name]; !ok {
					kept = *kept.DeepCopy()
					put(&kept.Limits, name, q)
				}
			}
		}
		return &kept
	}
	view := Desired(granted, true)
	for c := range resizable(&has.Spec, true) {
		if to, ok := view.Containers[c.Name]; ok {
			view.Containers[c.Name] = *keep(&c.Resources, &to)
		}
	}
	if old := has.Spec.Resources; old != nil {
		if view.Pod == nil {
			view.Pod = new(v1.ResourceRequirements)
		}
		view.Pod = keep(old, view.Pod)
	}
	return view.Apply(granted)
}

// container returns the named container that may be resized, or nil.
func container(pod *v1.Pod, name string) *v1.Container {
	for c := range resizable(&pod.Spec, true) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
