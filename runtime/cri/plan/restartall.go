package plan

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Removal is one instance that is removed from the runtime to restart all containers of
// its pod (rule rt-140). Its logs are kept.
type Removal struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"` // of the instance, as runtime.ContainerStatus.ID

	// Container is the spec of the container.
	Container *v1.Container `json:"-"`

	// Running reports whether the instance runs or may run. It must be stopped first,
	// with the minimum grace period and without its preStop hook.
	Running bool `json:"running,omitzero"`

	// Trigger reports whether the exit of the instance caused the restart.
	Trigger bool `json:"trigger,omitzero"`

	// Ended is the instance if its exit counts for back-off. The caller must store it in
	// History.Exits before it removes the instance; otherwise a trigger that exits
	// immediately would restart its pod without delay. If nil, the container is not
	// delayed, and the caller must delete its entry in History.Exits.
	Ended *runtime.ContainerStatus `json:"-"`
}

// restartAll plans the restart of all containers if a container exited that triggers it
// (rule rt-138): all instances are removed, in all sandboxes, so that the next plan is that
// of a new pod. It returns false if there is no trigger.
//
// The triggers are the only state: they are removed last, so an interrupted restart is
// continued and a completed one is not repeated. The condition AllContainersRestarting is
// ignored because it may be stale.
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
		inst := c.historyOf(ct).counts
		if inst == nil || inst.State != runtime.ContainerExited || !podspec.RestartsAll(ct, inst.ExitCode) {
			continue
		}
		if podspec.IsSidecar(ct) && (newest.changed || c.hasTerminated()) {
			continue // it was terminated with its pod
		}
		triggers = append(triggers, inst)
	}
	if len(triggers) == 0 {
		if newest.changed {
			c.sandbox = ""
			c.resetHistories()
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

// remove adds the instances of the containers of one kind to Plan.Remove, oldest first: of
// the containers with a trigger if triggering, else of those without.
func (c *computation) remove(kind Kind, triggers []*runtime.ContainerStatus, triggering bool) {
	since := triggers[0].FinishedAt // the end of the first trigger
	for _, t := range triggers[1:] {
		if t.FinishedAt.Before(since) {
			since = t.FinishedAt
		}
	}
	for k, ct := range c.containers() {
		counts := c.historyOf(ct).counts
		if k != kind || slices.Contains(triggers, counts) != triggering {
			continue
		}
		// The trigger is last of its name: the next Compute must find it as the newest
		// instance until all others are removed.
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

// crashed reports whether the exit of inst, which is not a trigger, delays its container: it
// failed, or would have been restarted alone. Init containers that succeeded are not delayed,
// nor are instances that were stopped for the restart, that is, ended after since.
func (c *computation) crashed(kind Kind, ct *v1.Container, inst *runtime.ContainerStatus, since time.Time) bool {
	switch {
	case inst.State != runtime.ContainerExited || !inst.FinishedAt.Before(since):
		return false
	case kind == Init && !podspec.IsSidecar(ct):
		return !c.succeeded(ct, inst)
	default:
		return inst.ExitCode != 0 || c.outcome.After(ct, podspec.ExitOf(inst)) != podspec.NoRestart
	}
}

// hasTerminated reports whether the pod has terminated: all regular containers have exited
// and will not restart, or an init container failed and will not.
func (c *computation) hasTerminated() bool {
	if c.outcome.HasFailedInit(c.Status) {
		return true
	}
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		if h := c.historyOf(ct); h.newest == nil || h.runs != nil || c.outcome.RunsInNewSandbox(ct, h.newest) {
			return false
		}
	}
	return true
}
