package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// An Outcome decides which containers of a pod run again and whether the pod has terminated. It
// is the only place of these decisions: a plan starts nothing exactly if the phase is terminal.
// The deletion of the pod is ignored.
type Outcome struct {
	Pod *v1.Pod

	// Terminated is the exit code of each regular container that has terminated and of
	// which the runtime may have no instance any more. It is not used for pods of which
	// any container may restart all.
	Terminated map[string]int32

	// IgnoreRestartAll ignores rules with the action RestartAllContainers.
	IgnoreRestartAll bool
}

// After returns the action after an exit of container c.
func (o *Outcome) After(c *v1.Container, e Exit) ExitAction {
	if o.IgnoreRestartAll {
		return ActionAfterExitWithoutAll(o.Pod, c, e)
	}
	return ActionAfterExit(o.Pod, c, e)
}

// RunsInNewSandbox reports whether regular container c is started in a sandbox in which it has
// no instance. newest is its newest instance; nil if the runtime has none.
func (o *Outcome) RunsInNewSandbox(c *v1.Container, newest *runtime.ContainerStatus) bool {
	switch {
	case newest == nil:
		return !o.terminatedBefore(c)
	case newest.State == runtime.ContainerCreated:
		return true
	default:
		return o.After(c, ExitOf(newest)) != NoRestart
	}
}

// terminatedBefore reports whether a container without instances has terminated for good
// according to Terminated.
func (o *Outcome) terminatedBefore(c *v1.Container) bool {
	code, ok := o.Terminated[c.Name]
	return ok && !MayRestartAll(o.Pod) && o.After(c, Exit{Code: code}) == NoRestart
}

// InitFailed reports whether an init container that is not a sidecar has failed, and must not
// restart, with the instance inst. The restart rules do not apply to an instance without an
// exit code (rule rt-66).
func (o *Outcome) InitFailed(c *v1.Container, inst *runtime.ContainerStatus) bool {
	switch inst.State {
	case runtime.ContainerCreated:
		return false
	case runtime.ContainerExited:
		e := ExitOf(inst)
		return !Succeeded(o.Pod, c, e) && o.After(c, e) == NoRestart
	default:
		return RestartPolicy(o.Pod, c) == v1.RestartPolicyNever
	}
}

// HasFailedInit reports whether the newest instance of an init container has failed and must not
// restart: the pod has failed and must not get a new sandbox.
func (o *Outcome) HasFailedInit(status *runtime.PodStatus) bool {
	for i := range o.Pod.Spec.InitContainers {
		c := &o.Pod.Spec.InitContainers[i]
		if newest := status.Container(c.Name); newest != nil && !IsSidecar(c) && o.InitFailed(c, newest) {
			return true
		}
	}
	return false
}

// NeedsSandbox reports whether a pod without a usable sandbox gets a new one: a regular
// container is to run, no init container has failed, and a pod with the restart policy Never
// does not run a second time (rules rt-39 to rt-43).
func (o *Outcome) NeedsSandbox(status *runtime.PodStatus) bool {
	starts, restartable, ran := false, false, false
	for i := range o.Pod.Spec.Containers {
		c := &o.Pod.Spec.Containers[i]
		if o.RunsInNewSandbox(c, status.Container(c.Name)) {
			starts, restartable = true, restartable || Restartable(o.Pod, c)
		}
		ran = ran || o.ran(c, status)
	}
	onlyOnce := o.Pod.Spec.RestartPolicy == v1.RestartPolicyNever && ran && !restartable
	return starts && !onlyOnce && !o.HasFailedInit(status)
}

// ran reports whether regular container c has been started: an instance that was only created
// does not count, so that a pod whose sandbox ends before any regular container has run is run
// in another (rule rt-41).
func (o *Outcome) ran(c *v1.Container, status *runtime.PodStatus) bool {
	if o.terminatedBefore(c) {
		return true
	}
	for i := range status.Containers {
		if inst := &status.Containers[i]; inst.Name == c.Name && inst.State != runtime.ContainerCreated {
			return true
		}
	}
	return false
}

// Over reports whether no container of the pod will be started again, so that the pod has
// terminated when none runs. A pod without containers is not over, nor is one whose sandbox has to
// be stopped first. Instances of a runtime without sandboxes count as those of a usable one.
func (o *Outcome) Over(status *runtime.PodStatus) bool {
	if len(o.Pod.Spec.Containers) == 0 {
		return false
	}
	sandbox := ""
	switch SandboxProblemOf(o.Pod, status) {
	case 0:
		sandbox = status.Sandboxes[0].ID
	case NoSandbox:
		if !hasInstanceWithoutSandbox(status) {
			return !o.NeedsSandbox(status)
		}
	case SandboxNotReady, SandboxStateUnknown:
		return !o.NeedsSandbox(status)
	default:
		return false
	}
	switch done, failed := o.initialized(status, sandbox); {
	case failed:
		return true
	case !done:
		return false
	}
	for i := range o.Pod.Spec.Containers {
		c := &o.Pod.Spec.Containers[i]
		switch inst := inSandbox(status, c.Name, sandbox); {
		case inst == nil:
			if o.RunsInNewSandbox(c, status.Container(c.Name)) {
				return false
			}
		case inst.State == runtime.ContainerRunning || inst.State == runtime.ContainerCreated || o.After(c, ExitOf(inst)) != NoRestart:
			return false
		}
	}
	return true
}

func hasInstanceWithoutSandbox(status *runtime.PodStatus) bool {
	return slices.ContainsFunc(status.Containers, func(c runtime.ContainerStatus) bool { return c.SandboxID == "" })
}

// InitPending reports whether regular containers wait in the pod's usable sandbox for init
// containers: those of former sandboxes do not count, so that a pod is not initialized after a
// reboot. It is false if the sandbox is not usable. Sidecars need only have been started.
func (o *Outcome) InitPending(status *runtime.PodStatus) bool {
	if SandboxProblemOf(o.Pod, status) != 0 {
		return false
	}
	done, failed := o.initialized(status, status.Sandboxes[0].ID)
	return !done && !failed
}

// begun reports whether a regular container has an instance in the sandbox, so that the init
// containers are not considered any more (rule rt-54).
func (o *Outcome) begun(status *runtime.PodStatus, sandbox string) bool {
	for i := range o.Pod.Spec.Containers {
		if inSandbox(status, o.Pod.Spec.Containers[i].Name, sandbox) != nil {
			return true
		}
	}
	return false
}

// initialized returns the progress of the init containers in the sandbox, which depends on the
// last one that has an instance in it. They are done if a regular container has one.
func (o *Outcome) initialized(status *runtime.PodStatus, sandbox string) (done, failed bool) {
	list := o.Pod.Spec.InitContainers
	if len(list) == 0 || o.begun(status, sandbox) {
		return true, false
	}
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		inst := inSandbox(status, c.Name, sandbox)
		switch {
		case inst == nil:
		case IsSidecar(c):
			return i == len(list)-1, false
		case inst.State == runtime.ContainerExited && Succeeded(o.Pod, c, ExitOf(inst)):
			return i == len(list)-1, false
		default:
			return false, inst.State != runtime.ContainerRunning && o.InitFailed(c, inst)
		}
	}
	return false, false
}

// inSandbox returns the instance of the named container in the sandbox on which decisions
// depend: one that runs, else the newest; nil if there is none.
func inSandbox(status *runtime.PodStatus, name, sandbox string) *runtime.ContainerStatus {
	var newest *runtime.ContainerStatus
	for i := range status.Containers {
		inst := &status.Containers[i]
		if inst.Name != name || inst.SandboxID != sandbox {
			continue
		}
		if inst.State == runtime.ContainerRunning {
			return inst
		}
		if newest == nil {
			newest = inst
		}
	}
	return newest
}
