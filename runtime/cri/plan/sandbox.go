package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A sandbox describes whether the newest sandbox of a pod is usable.
type sandbox struct {
	id      string // of the newest; "" if there is none
	changed bool   // it is not usable, or does not exist
	attempt uint32 // of the sandbox to create if changed
	reason  string // why it is not usable, as text
}

// inspectSandbox determines whether containers can be started in the newest sandbox.
func inspectSandbox(pod *v1.Pod, status *runtime.PodStatus) sandbox {
	if len(status.Sandboxes) == 0 {
		return sandbox{changed: true}
	}
	newest := &status.Sandboxes[0]
	s := sandbox{id: newest.ID, attempt: newest.Attempt + 1}
	switch podspec.SandboxProblemOf(pod, status) {
	case podspec.SeveralSandboxes:
		s.reason = "several sandboxes are ready at once"
	case podspec.SandboxNotReady:
		s.reason = fmt.Sprintf("sandbox %s is not ready", newest.ID)
	case podspec.SandboxStateUnknown:
		s.reason = fmt.Sprintf("sandbox %s is in an unknown state", newest.ID)
	case podspec.SandboxNetworkMode:
		if s.reason = fmt.Sprintf("sandbox %s is not on the host network, the pod is", newest.ID); newest.HostNetwork {
			s.reason = fmt.Sprintf("sandbox %s is on the host network, the pod is not", newest.ID)
		}
	case podspec.SandboxWithoutIP:
		s.reason = fmt.Sprintf("sandbox %s has no IP", newest.ID)
	}
	s.changed = s.reason != ""
	return s
}

// inNewSandbox plans a pod without a usable sandbox: the pod is stopped, and restarted in a
// new sandbox, or restored, if it has not terminated (rules rt-39 to rt-44).
func (c *computation) inNewSandbox(s sandbox) {
	c.plan.Changed = s.reason
	if !c.outcome.NeedsSandbox(c.Status) {
		c.killPod(KillSandboxChanged)
		return
	}
	switch inits := c.Pod.Spec.InitContainers; {
	case c.plan.Restore != "":
		c.restore()
	case len(inits) > 0:
		h := c.historyOf(&inits[0])
		c.start(Init, &inits[0], h, step{reason: fresh(h)})
		c.plan.Waits = waitsForInit
	default:
		for i := range c.Pod.Spec.Containers {
			ct := &c.Pod.Spec.Containers[i]
			h := c.historyOf(ct)
			if sp := c.regular(ct, h); sp.reason != "" {
				c.start(Regular, ct, h, sp)
			}
		}
	}
	c.plan.CreateSandbox = true
	c.plan.Attempt = s.attempt
	c.plan.Kill = nil // included in KillPod
	c.plan.Replaced = nil
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		if h := c.historyOf(ct); h.newest != nil && c.mayRun(h.newest) && c.outcome.RunsInNewSandbox(ct, h.newest) {
			c.plan.Replaced = append(c.plan.Replaced, Replaced{ct.Name, h.newest.ID})
		}
	}
	if len(c.Status.Sandboxes) > 0 || c.hasRunning() {
		// A sandbox that is not ready is stopped again to release its network.
		c.plan.KillPod = true
		c.plan.KillReason = KillSandboxChanged
	}
}
