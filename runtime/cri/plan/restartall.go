package plan

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Removal is one instance that is removed from the runtime so that its pod
// starts over (rt-140). Its logs stay.
type Removal struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"` // of the instance, as runtime.ContainerStatus.ID

	// Container is its spec.
	Container *v1.Container `json:"-"`

	// Running: it runs, or may, and has to be stopped first: in the shortest
	// time, without preStop.
	Running bool `json:"running,omitzero"`

	// Trigger: its exit is the reason for all of it.
	Trigger bool `json:"trigger,omitzero"`

	// Ended is the instance if its exit counts for back-off: it is to be put
	// on record, for [Input].Ended under Name, before the instance is removed.
	// Otherwise a trigger that exits at once would make its pod start over
	// without a pause. Nil: the container is not to be delayed for this
	// instance, and what is on record of an earlier one is to be dropped.
	Ended *runtime.ContainerStatus `json:"-"`
}

// ReasonRestartAll is the reason for which instances in Plan.Remove are stopped
// (rt-140).
const ReasonRestartAll = "RestartAllContainers"

// restartAll plans for a pod of which a container exited so that all have to
// start over (rt-138, rt-40): every instance is removed, in or out of the
// sandbox, and the plan after that finds a pod that has not run yet. It returns
// false if there is nothing of the kind.
//
// The exits that ask for it are all the memory it needs. They are removed last,
// so that whoever is interrupted goes on where it stopped, and with them goes
// the reason to do it again. The condition AllContainersRestarting is not
// looked at: it may be old.
func (c *computation) restartAll(newest sandbox) bool {
	if c.IgnoreRestartAll || len(c.Status.Containers) == 0 || !podspec.MayRestartAll(c.Pod) {
		return false
	}
	c.sandbox = newest.id
	var triggers []*runtime.ContainerStatus
	for kind, ct := range c.containers() {
		if kind == Ephemeral {
			continue
		}
		inst := c.look(ct).counts
		if inst == nil || inst.State != runtime.ContainerExited || !podspec.RestartsAll(ct, inst.ExitCode) {
			continue
		}
		if podspec.IsSidecar(ct) && (newest.changed || c.over()) {
			continue // it did not exit, it went down with its pod
		}
		triggers = append(triggers, inst)
	}
	if len(triggers) == 0 {
		if newest.changed {
			c.sandbox = ""
			c.forget()
		}
		return false
	}
	c.plan.SandboxID = newest.id
	c.remove(Regular, triggers, false)
	c.remove(Init, triggers, false)
	c.remove(Regular, triggers, true)
	c.remove(Init, triggers, true)
	return true
}

// remove adds the instances of the containers of one kind to those that are
// removed, the oldest first: of the containers with a trigger, or of those
// without.
func (c *computation) remove(kind Kind, triggers []*runtime.ContainerStatus, triggering bool) {
	since := triggers[0].FinishedAt // when the first of them ended
	for _, t := range triggers[1:] {
		if t.FinishedAt.Before(since) {
			since = t.FinishedAt
		}
	}
	for k, ct := range c.containers() {
		counts := c.look(ct).counts
		if k != kind || slices.Contains(triggers, counts) != triggering {
			continue
		}
		// The trigger comes after all others of its name, or they would hide
		// it from the next look.
		first := len(c.plan.Remove)
		for inst := range c.instances(ct.Name) {
			if triggering && inst == counts {
				continue
			}
			r := Removal{Kind: kind, Name: ct.Name, ID: inst.ID, Container: ct, Running: c.mayRun(inst)}
			if !triggering && c.crashed(kind, ct, inst, since) {
				r.Ended = inst
			}
			c.plan.Remove = append(c.plan.Remove, r)
		}
		slices.Reverse(c.plan.Remove[first:])
		if triggering {
			r := Removal{Kind: kind, Name: ct.Name, ID: counts.ID, Container: ct, Running: c.mayRun(counts), Trigger: true, Ended: counts}
			c.plan.Remove = append(c.plan.Remove, r)
		}
	}
}

// crashed reports whether the exit of inst, which is not a trigger, delays the
// container when the pod starts over: it failed, or would have been followed by
// a restart of its own (rt-95). Work that was done is done again at once, and
// what ended since the pod began to start over was stopped for that.
func (c *computation) crashed(kind Kind, ct *v1.Container, inst *runtime.ContainerStatus, since time.Time) bool {
	switch {
	case inst.State != runtime.ContainerExited || !inst.FinishedAt.Before(since):
		return false
	case kind == Init && !podspec.IsSidecar(ct):
		return !succeeded(inst)
	default:
		return inst.ExitCode != 0 || c.after(ct, inst.ExitCode) != podspec.NoRestart
	}
}

// over reports whether the pod has come to its end: its regular containers have
// exited for good, or an init container has failed for good.
func (c *computation) over() bool {
	if c.initFailedForGood() {
		return true
	}
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		if h := c.look(ct); h.newest == nil || c.exitVerdict(ct, h.newest) != podspec.NoRestart || h.runs != nil {
			return false
		}
	}
	return true
}
