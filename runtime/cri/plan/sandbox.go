package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A sandbox is the verdict on the newest sandbox of a pod (spec 4.4).
type sandbox struct {
	id      string // of the newest; "" if there is none
	changed bool   // it cannot be used, or there is none
	attempt uint32 // of the sandbox to create if changed
	why     string // in words, why the one there is cannot be used
}

// judgeSandbox decides whether containers can go into the newest sandbox.
func judgeSandbox(pod *v1.Pod, status *runtime.PodStatus) sandbox {
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
		s.why = fmt.Sprintf("%d sandboxes are ready at once", ready)
	case newest.State == runtime.SandboxNotReady:
		s.why = fmt.Sprintf("sandbox %s is not ready", newest.ID)
	case newest.State != runtime.SandboxReady:
		s.why = fmt.Sprintf("sandbox %s is in an unknown state", newest.ID)
	case newest.HostNetwork && !pod.Spec.HostNetwork:
		s.why = fmt.Sprintf("sandbox %s is on the host network, the pod is not", newest.ID)
	case !newest.HostNetwork && pod.Spec.HostNetwork:
		s.why = fmt.Sprintf("sandbox %s is not on the host network, the pod is", newest.ID)
	case !pod.Spec.HostNetwork && newest.NetworkReported && (len(newest.IPs) == 0 || newest.IPs[0] == ""):
		s.why = fmt.Sprintf("sandbox %s has no IP", newest.ID)
	}
	s.changed = s.why != ""
	return s
}

// inNewSandbox plans for a pod that has no usable sandbox: everything of it is
// stopped, and if it has still something to do it begins anew in a new sandbox
// (rt-39 … rt-44).
func (c *computation) inNewSandbox(s sandbox) {
	c.plan.Changed = s.why
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		h := c.look(ct)
		if sp := c.regular(ct, h); sp.reason != "" {
			c.start(Regular, ct, h, sp)
		}
	}
	if len(c.plan.Start) == 0 || c.ranOnce() || c.initFailedForGood() {
		c.killPod(KillSandboxChanged) // rt-41, rt-43
		return
	}
	if len(c.Pod.Spec.InitContainers) > 0 {
		ct := &c.Pod.Spec.InitContainers[0]
		h := c.look(ct)
		c.plan.Start = nil
		c.start(Init, ct, h, step{reason: fresh(h)}) // rt-44
		c.plan.Waits = waitsForInit
	}
	c.plan.CreateSandbox = true
	c.plan.Attempt = s.attempt
	c.plan.Kill = nil // killing the pod takes care of them
	if len(c.Status.Sandboxes) > 0 || c.somethingRuns() {
		// Also a sandbox that is down already is stopped once more, so that
		// its network is given back.
		c.plan.KillPod = true
		c.plan.KillReason = KillSandboxChanged
	}
}

// ranOnce reports whether the pod is to run only once and did: its policy is
// Never, and it had a container (rt-41). It holds also if the sandbox of that
// container has been removed since. Containers which by a policy of their own
// are to go on keep the pod going.
func (c *computation) ranOnce() bool {
	if c.Pod.Spec.RestartPolicy != v1.RestartPolicyNever || len(c.Status.Containers) == 0 {
		return false
	}
	for i := range c.plan.Start {
		if podspec.Restartable(c.Pod, c.plan.Start[i].Container) { // rt-38
			return false
		}
	}
	return true
}

// initFailedForGood reports whether an init container failed and is not to be
// tried again, so that a new sandbox would lead nowhere: the pod was stopped
// for it (rt-64, rt-66) and must not come back.
func (c *computation) initFailedForGood() bool {
	for i := range c.Pod.Spec.InitContainers {
		ct := &c.Pod.Spec.InitContainers[i]
		if podspec.IsSidecar(ct) {
			continue
		}
		if h := c.look(ct); h.newest != nil && c.initVerdict(ct, h.newest) == initFailed {
			return true
		}
	}
	return false
}
