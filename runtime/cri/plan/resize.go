package plan

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Resize is one running instance whose CPU and memory are to be changed in place.
type Resize struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"` // of the instance, as runtime.ContainerStatus.ID

	// Container is the spec of the container.
	Container *v1.Container `json:"-"`

	// From are the current resources of the instance, To the desired ones: the CPU and
	// memory of the spec, and the limits of From that the spec no longer has, because a
	// limit cannot be removed from a running instance (rule al-19).
	From *v1.ResourceRequirements `json:"from"`
	To   *v1.ResourceRequirements `json:"to"`

	// Why lists the changes as text.
	Why string `json:"why"`
}

// String returns the resize as one line of text.
func (r Resize) String() string {
	return fmt.Sprintf("resize %s %s (%s): %s", r.Kind, r.Name, r.ID, r.Why)
}

// amounts are the resources of a container that a resize can change, in the kernel's units,
// so that amounts that have the same effect are equal: requests of 1m and 2m are both 2
// shares, and limits up to 10m have the same quota.
type amounts struct {
	shares int64 // of the CPU request, else of the CPU limit
	quota  int64 // in microseconds per 100 ms; 0 means no limit
	limit  int64 // of memory, in bytes; 0 means none
	memory int64 // request, in bytes; 0 means none
}

// amountsOf returns the amounts of r. Limits that r does not have are taken from kept, which
// may be nil, because a running instance keeps them.
func amountsOf(r, kept *v1.ResourceRequirements) amounts {
	limitOf := func(name v1.ResourceName) resource.Quantity {
		if q := r.Limits[name]; q.Sign() > 0 || kept == nil {
			return q
		}
		return kept.Limits[name]
	}
	limit, memory := limitOf(v1.ResourceCPU), limitOf(v1.ResourceMemory)
	request, ok := r.Requests[v1.ResourceCPU]
	if !ok {
		request = limit
	}
	a := amounts{
		shares: cgroups.Shares(podspec.MilliCPU(request)),
		limit:  max(memory.Value(), 0),
	}
	if limit.Sign() > 0 {
		a.quota = cgroups.Quota(podspec.MilliCPU(limit), cgroups.DefaultPeriod)
	}
	if q, ok := r.Requests[v1.ResourceMemory]; ok {
		a.memory = max(q.Value(), 0)
	}
	return a
}

// A change is the difference between the resources of a spec and those of an instance.
type change struct {
	cpuRequest, cpuLimit, memoryRequest, memoryLimit bool

	// restarts reports whether the container's resizePolicy requires a restart.
	restarts bool
}

func (ch change) none() bool {
	return !ch.cpuRequest && !ch.cpuLimit && !ch.memoryRequest && !ch.memoryLimit
}

// desired returns the resources of a container: those of its spec, with the pod-level limits
// that it inherits.
func desired(pod *v1.Pod, ct *v1.Container) *v1.ResourceRequirements {
	return &v1.ResourceRequirements{Requests: ct.Resources.Requests, Limits: podspec.Limits(pod, ct)}
}

// changeOf compares the desired resources of ct with those of an instance, given. If
// given is nil, they are unknown and there is no change.
//
// If the memory request of the instance is unknown, it is updated without a restart: the
// kernel does not store it, so a lost checkpoint looks the same.
func changeOf(pod *v1.Pod, ct *v1.Container, given *v1.ResourceRequirements) change {
	ch := between(desired(pod, ct), given)
	if ch.none() {
		return ch
	}
	for _, p := range ct.ResizePolicy {
		if p.RestartPolicy != v1.RestartContainer {
			continue
		}
		switch p.ResourceName {
		case v1.ResourceCPU:
			ch.restarts = ch.restarts || ch.cpuRequest || ch.cpuLimit
		case v1.ResourceMemory:
			ch.restarts = ch.restarts || ch.memoryLimit || ch.memoryRequest && amountsOf(given, nil).memory != 0
		}
	}
	return ch
}

// between returns the change from given to want; none if one of them is nil, which means
// unknown.
func between(want, given *v1.ResourceRequirements) change {
	if want == nil || given == nil {
		return change{}
	}
	to, from := amountsOf(want, given), amountsOf(given, nil)
	return change{
		cpuRequest:    to.shares != from.shares,
		cpuLimit:      to.quota != from.quota,
		memoryRequest: to.memory != from.memory,
		memoryLimit:   to.limit != from.limit,
	}
}

// resizeRestarts reports whether an instance with the resources given must be restarted to
// get those of the spec.
func resizeRestarts(pod *v1.Pod, ct *v1.Container, given *v1.ResourceRequirements) bool {
	return changeOf(pod, ct, given).restarts
}

// resize adds the resize of inst, which runs and is kept, to the plan if its resources differ
// from the spec's.
func (c *computation) resize(kind Kind, ct *v1.Container, inst *runtime.ContainerStatus) {
	ch := changeOf(c.Pod, ct, inst.Resources)
	if ch.none() {
		return
	}
	to := target(desired(c.Pod, ct), inst.Resources)
	c.plan.Resize = append(c.plan.Resize, Resize{
		Kind: kind, Name: ct.Name, ID: inst.ID, Container: ct,
		From: inst.Resources, To: to, Why: ch.why(inst.Resources, to),
	})
}

// A PodResize is a change of pod-level resources in place.
type PodResize struct {
	// From are the current pod-level resources, To the desired ones, as in Resize.
	From *v1.ResourceRequirements `json:"from"`
	To   *v1.ResourceRequirements `json:"to"`

	// Why lists the changes as text.
	Why string `json:"why"`
}

// resizePod adds the resize of the pod if its pod-level resources differ from the current
// ones and both are set.
func (c *computation) resizePod() {
	ch := between(c.Pod.Spec.Resources, c.History.PodResources)
	if c.plan.KillPod || ch.none() {
		return
	}
	to := target(c.Pod.Spec.Resources, c.History.PodResources)
	c.plan.ResizePod = &PodResize{From: c.History.PodResources, To: to, Why: ch.why(c.History.PodResources, to)}
}

// why returns the changes as text.
func (ch change) why(from, to *v1.ResourceRequirements) string {
	var why []string
	for _, w := range []struct {
		changed  bool
		label    string
		from, to v1.ResourceList
		name     v1.ResourceName
	}{
		{ch.cpuRequest, "cpu request", from.Requests, to.Requests, v1.ResourceCPU},
		{ch.cpuLimit, "cpu limit", from.Limits, to.Limits, v1.ResourceCPU},
		{ch.memoryRequest, "memory request", from.Requests, to.Requests, v1.ResourceMemory},
		{ch.memoryLimit, "memory limit", from.Limits, to.Limits, v1.ResourceMemory},
	} {
		// Without a request, shares follow the limit: that is one change.
		if from, to := amount(w.from, w.name), amount(w.to, w.name); w.changed && from != to {
			why = append(why, fmt.Sprintf("%s from %s to %s", w.label, from, to))
		}
	}
	return strings.Join(why, ", ")
}

// target returns the CPU and memory of want, with the limits of given that it lacks.
func target(want, given *v1.ResourceRequirements) *v1.ResourceRequirements {
	to := new(v1.ResourceRequirements)
	set := func(list *v1.ResourceList, name v1.ResourceName, from v1.ResourceList) bool {
		q, ok := from[name]
		if ok {
			if *list == nil {
				*list = make(v1.ResourceList)
			}
			(*list)[name] = q.DeepCopy()
		}
		return ok
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		set(&to.Requests, name, want.Requests)
		if limit := want.Limits[name]; limit.Sign() > 0 || !set(&to.Limits, name, given.Limits) {
			set(&to.Limits, name, want.Limits)
		}
	}
	return to
}

// amount returns the quantity of the name as text, "none" if it is not in the list.
func amount(list v1.ResourceList, name v1.ResourceName) string {
	q, ok := list[name]
	if !ok {
		return "none"
	}
	return q.String()
}
