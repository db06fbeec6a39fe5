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
	ready := 0
	for i := range status.Sandboxes {
		if status.Sandboxes[i].State == runtime.SandboxReady {
			ready++
		}
	}
	s := sandbox{id: newest.ID, attempt: newest.Attempt + 1}
	switch {
	case ready > 1:
		s.reason = fmt.Sprintf("%d sandboxes are ready at once", ready)
	case newest.State == runtime.SandboxNotReady:
		s.reason = fmt.Sprintf("sandbox %s is not ready", newest.ID)
	case newest.State != runtime.SandboxReady:
		s.reason = fmt.Sprintf("sandbox %s is in an unknown state", newest.ID)
	case newest.HostNetwork && !pod.Spec.HostNetwork:
		s.reason = fmt.Sprintf("sandbox %s is on the host network, the pod is not", newest.ID)
	case !newest.HostNetwork && pod.Spec.HostNetwork:
		s.reason = fmt.Sprintf("sandbox %s is not on the host network, the pod is", newest.ID)
	case !pod.Spec.HostNetwork && newest.NetworkReported && (len(newest.IPs) == 0 || newest.IPs[0] == ""):
		s.reason = fmt.Sprintf("sandbox %s has no IP", newest.ID)
	}
	s.changed = s.reason != ""
	return s
}

// inNewSandbox plans a pod without a usable sandbox: the pod is stopped, and restarted in a
// new sandbox if it has not terminated (rules rt-39 to rt-44).
func (c *computation) inNewSandbox(s sandbox) {
	c.plan.Changed = s.reason
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		h := c.historyOf(ct)
		if sp := c.regular(ct, h); sp.reason != "" {
			c.start(Regular, ct, h, sp)
		}
	}
	if len(c.plan.Start) == 0 || c.ranOnce() || c.hasFailedInit() {
		c.killPod(KillSandboxChanged)
		return
	}
	if len(c.Pod.Spec.InitContainers) > 0 {
		ct := &c.Pod.Spec.InitContainers[0]
		h := c.historyOf(ct)
		c.plan.Start = nil
		c.start(Init, ct, h, step{reason: fresh(h)})
		c.plan.Waits = waitsForInit
	}
	c.plan.CreateSandbox = true
	c.plan.Attempt = s.attempt
	c.plan.Kill = nil // included in KillPod
	if len(c.Status.Sandboxes) > 0 || c.hasRunning() {
		// A sandbox that is not ready is stopped again to release its network.
		c.plan.KillPod = true
		c.plan.KillReason = KillSandboxChanged
	}
}

// ranOnce reports whether the pod has the restart policy Never and has run: it has a
// container, even if its sandbox was removed (rule rt-41). It is false if a container to
// start may restart by its own policy.
func (c *computation) ranOnce() bool {
	if c.Pod.Spec.RestartPolicy != v1.RestartPolicyNever || len(c.Status.Containers) == 0 {
		return false
	}
	for i := range c.plan.Start {
		if podspec.Restartable(c.Pod, c.plan.Start[i].Container) {
			return false
		}
	}
	return true
}

// hasFailedInit reports whether an init container failed and will not restart: the pod has
// failed and must not get a new sandbox.
func (c *computation) hasFailedInit() bool {
	for i := range c.Pod.Spec.InitContainers {
		ct := &c.Pod.Spec.InitContainers[i]
		if podspec.IsSidecar(ct) {
			continue
		}
		if h := c.historyOf(ct); h.newest != nil && c.initVerdict(ct, h.newest) == initFailed {
			return true
		}
	}
	return false
}
