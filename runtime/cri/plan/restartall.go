package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/restart"
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
	if c.IgnoreRestartAll || len(c.Status.Containers) == 0 || !restart.MayRestartAll(c.Pod) {
		return false
	}
	c.sandbox = newest.id
	var triggers []*runtime.ContainerStatus
	for kind, ct := range c.containers() {
		if kind == Ephemeral {
			continue
		}
		inst := c.look(ct).counts
		if inst == nil || inst.State != runtime.ContainerExited || !restart.RestartsAll(ct, inst.ExitCode) {
			continue
		}
		if restart.Sidecar(ct) && (newest.changed || c.over()) {
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
			c.plan.Remove = append(c.plan.Remove, c.removal(kind, ct, inst))
		}
		slices.Reverse(c.plan.Remove[first:])
		if triggering {
			r := c.removal(kind, ct, counts)
			r.Trigger = true
			c.plan.Remove = append(c.plan.Remove, r)
		}
	}
}

func (c *computation) removal(kind Kind, ct *v1.Container, inst *runtime.ContainerStatus) Removal {
	return Removal{Kind: kind, Name: ct.Name, ID: inst.ID, Container: ct, Running: c.mayRun(inst)}
}

// over reports whether the pod has come to its end: its regular containers have
// exited for good, or an init container has failed for good.
func (c *computation) over() bool {
	if c.initFailedForGood() {
		return true
	}
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		if h := c.look(ct); h.newest == nil || c.exitVerdict(ct, h.newest) != restart.Final || h.runs != nil {
			return false
		}
	}
	return true
}
