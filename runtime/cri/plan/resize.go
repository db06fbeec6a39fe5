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

// A Resize is one running instance that is to be given other resources while it
// runs (al-14). Only CPU and memory can change so.
type Resize struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"` // of the instance, as runtime.ContainerStatus.ID

	// Container is its spec.
	Container *v1.Container `json:"-"`

	// From is what the instance was last given, To what it is to be given: the
	// CPU and memory of the spec, and the limits of From that the spec has no
	// more, for a limit cannot be taken away from what runs (al-19).
	From *v1.ResourceRequirements `json:"from"`
	To   *v1.ResourceRequirements `json:"to"`

	// Why says what changes, in words.
	Why string `json:"why"`
}

// String returns the resize in words.
func (r Resize) String() string {
	return fmt.Sprintf("resize %s %s (%s): %s", r.Kind, r.Name, r.ID, r.Why)
}

// amounts are the resources of a container that a resize can change, in units
// of the kernel's, so that two that it cannot tell apart are equal: a request of
// 1m and of 2m are 2 shares both, limits up to 10m the same quota.
type amounts struct {
	shares int64 // of the CPU request, else of the CPU limit (cm-32)
	quota  int64 // in microseconds per 100 ms; 0 is no limit
	limit  int64 // of memory, in bytes; 0 is none
	memory int64 // request, in bytes; 0 is none
}

// amountsOf returns the amounts of r, where limits that r has not are taken
// from kept (nil: from nowhere), as an instance keeps them (al-19).
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

// A change is what differs between the resources of a spec and those that an
// instance was given.
type change struct {
	cpuRequest, cpuLimit, memoryRequest, memoryLimit bool

	// restarts: the container's resizePolicy wants a restart for it.
	restarts bool
}

func (ch change) none() bool {
	return !ch.cpuRequest && !ch.cpuLimit && !ch.memoryRequest && !ch.memoryLimit
}

// changeOf compares the spec of ct with what an instance of it was given. If
// nobody knows that there is nothing to compare, and nothing changes.
//
// A memory request the instance has no record of is worth writing down but not
// worth a restart: the kernel keeps none, so that a lost record looks the same
// (rt-13).
func changeOf(ct *v1.Container, given *v1.ResourceRequirements) change {
	ch := between(&ct.Resources, given)
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

// between compares what is wanted with what was given; nil is not known.
func between(wanted, given *v1.ResourceRequirements) change {
	if wanted == nil || given == nil {
		return change{}
	}
	want, have := amountsOf(wanted, given), amountsOf(given, nil)
	return change{
		cpuRequest:    want.shares != have.shares,
		cpuLimit:      want.quota != have.quota,
		memoryRequest: want.memory != have.memory,
		memoryLimit:   want.limit != have.limit,
	}
}

// resizeRestarts reports whether an instance that was given those resources
// can get those of the spec only by a restart (al-15).
func resizeRestarts(ct *v1.Container, given *v1.ResourceRequirements) bool {
	return changeOf(ct, given).restarts
}

// resize adds the resize of inst, which runs and stays, to the plan if its
// resources are not those of the spec.
func (c *computation) resize(kind Kind, ct *v1.Container, inst *runtime.ContainerStatus) {
	ch := changeOf(ct, inst.Resources)
	if ch.none() {
		return
	}
	to := target(&ct.Resources, inst.Resources)
	c.plan.Resize = append(c.plan.Resize, Resize{
		Kind: kind, Name: ct.Name, ID: inst.ID, Container: ct,
		From: inst.Resources, To: to, Why: ch.why(inst.Resources, to),
	})
}

// A PodResize is a pod whose resources as a whole are to be others while it
// runs (al-14).
type PodResize struct {
	// From is what the pod was last given, To what it is to be given, as in
	// Resize.
	From *v1.ResourceRequirements `json:"from"`
	To   *v1.ResourceRequirements `json:"to"`

	// Why says what changes, in words.
	Why string `json:"why"`
}

// resizePod adds the resize of the pod as a whole, if its spec says something of
// that and it is not what the pod was given.
func (c *computation) resizePod() {
	ch := between(c.Pod.Spec.Resources, c.History.PodResources)
	if c.plan.KillPod || ch.none() {
		return
	}
	to := target(c.Pod.Spec.Resources, c.History.PodResources)
	c.plan.ResizePod = &PodResize{From: c.History.PodResources, To: to, Why: ch.why(c.History.PodResources, to)}
}

// why says in words what changes.
func (ch change) why(from, to *v1.ResourceRequirements) string {
	var why []string
	for _, w := range []struct {
		changed  bool
		what     string
		from, to v1.ResourceList
		name     v1.ResourceName
	}{
		{ch.cpuRequest, "cpu request", from.Requests, to.Requests, v1.ResourceCPU},
		{ch.cpuLimit, "cpu limit", from.Limits, to.Limits, v1.ResourceCPU},
		{ch.memoryRequest, "memory request", from.Requests, to.Requests, v1.ResourceMemory},
		{ch.memoryLimit, "memory limit", from.Limits, to.Limits, v1.ResourceMemory},
	} {
		// Shares follow the limit where nothing is requested: that is one change.
		if from, to := amount(w.from, w.name), amount(w.to, w.name); w.changed && from != to {
			why = append(why, fmt.Sprintf("%s from %s to %s", w.what, from, to))
		}
	}
	return strings.Join(why, ", ")
}

// target returns the CPU and memory of what is wanted for what was given those
// resources.
func target(wanted, given *v1.ResourceRequirements) *v1.ResourceRequirements {
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
		set(&to.Requests, name, wanted.Requests)
		if limit := wanted.Limits[name]; limit.Sign() > 0 || !set(&to.Limits, name, given.Limits) {
			set(&to.Limits, name, wanted.Limits)
		}
	}
	return to
}

// amount returns an amount in words.
func amount(list v1.ResourceList, name v1.ResourceName) string {
	q, ok := list[name]
	if !ok {
		return "none"
	}
	return q.String()
}
