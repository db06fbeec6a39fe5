package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// mustRestore reports whether the pod is still to be restored from a checkpoint: not all of its containers have been
// started in one sandbox yet, so that the processes of the checkpoint have not continued together. A pod of which a
// regular container has terminated is not restored, because that would run it again.
func (c *computation) mustRestore() bool {
	if c.RestoreFrom == "" || c.Pod.DeletionTimestamp != nil {
		return false
	}
	for i := range c.Pod.Spec.Containers {
		if ct := &c.Pod.Spec.Containers[i]; !c.outcome.RunsInNewSandbox(ct, c.Status.Container(ct.Name)) {
			return false
		}
	}
	for i := range c.Status.Sandboxes {
		if c.eachIn(c.Status.Sandboxes[i].ID, func(_ *v1.Container, inst *runtime.ContainerStatus) bool { return hasBegun(inst) }) {
			return false
		}
	}
	return true
}

// restoreProblem returns the reason, as text, why a restore cannot continue in a sandbox; "" if it can: each container
// has an instance there that has been started or can be.
func (c *computation) restoreProblem(sandbox string) string {
	var missing string
	c.eachIn(sandbox, func(ct *v1.Container, inst *runtime.ContainerStatus) bool {
		if hasBegun(inst) || inst != nil && inst.State == runtime.ContainerCreated && inst.Hash == Hash(ct) {
			return true
		}
		missing = ct.Name
		return false
	})
	if missing == "" {
		return ""
	}
	return fmt.Sprintf("sandbox %s has no restored container %s that can be started", sandbox, missing)
}

// eachIn reports whether f returns true for each container of a checkpoint with its newest instance in the sandbox, nil
// if there is none. It stops at the first that does not.
func (c *computation) eachIn(sandbox string, f func(*v1.Container, *runtime.ContainerStatus) bool) bool {
	for ct := range podspec.LongRunning(c.Pod) {
		var newest *runtime.ContainerStatus
		for inst := range c.instances(ct.Name) {
			if inst.SandboxID == sandbox {
				newest = inst
				break
			}
		}
		if !f(ct, newest) {
			return false
		}
	}
	return true
}

// hasBegun reports whether an instance runs or has run. A start that failed leaves an exited instance without a start.
func hasBegun(inst *runtime.ContainerStatus) bool {
	switch {
	case inst == nil || inst.State == runtime.ContainerCreated:
		return false
	case inst.State == runtime.ContainerExited:
		return !inst.StartedAt.IsZero()
	default:
		return true
	}
}

// restore plans the restore of a pod in a new sandbox. Its containers are created together, so that none is in
// back-off: the retries of a restore that fails are delayed by the caller, as those of the creation of a sandbox.
func (c *computation) restore() {
	for ct := range podspec.LongRunning(c.Pod) {
		kind := Regular
		if podspec.IsSidecar(ct) {
			kind = Init
		}
		c.start(kind, ct, c.historyOf(ct), step{reason: StartRestored})
	}
	for i := range c.plan.Start {
		c.plan.Start[i].Delay, c.plan.Start[i].NotBefore = 0, time.Time{}
	}
}
