package plan

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// Compute returns the next operations towards in.Pod (rules rt-31 to rt-69, rt-138 to rt-143,
// al-14, al-15).
//
// It is a pure function: the same input gives the same plan, and the input is not changed. It
// does not panic for any input. If no container exits, repeatedly carrying out the plan and
// computing again ends with an empty plan (rule inv-16).
func Compute(in Input) Plan {
	if in.Pod == nil {
		return Plan{}
	}
	if in.Status == nil {
		in.Status = new(runtime.PodStatus)
	}
	c := computation{Input: in, outcome: podspec.Outcome{
		Pod: in.Pod, Terminated: in.History.Terminated, IgnoreRestartAll: in.IgnoreRestartAll,
	}}
	newest := inspectSandbox(in.Pod, in.Status)
	newest.attempt = max(newest.attempt, in.History.SandboxAttempts)
	if c.mustRestore() {
		c.plan.Restore = c.RestoreFrom
		if !newest.changed {
			newest.reason = c.restoreProblem(newest.id)
			newest.changed = newest.reason != ""
		}
	}
	switch {
	case in.Pod.DeletionTimestamp != nil:
		c.whileDeleted(newest)
	case c.restartAll(newest):
		// nothing else is planned
	case newest.changed:
		c.inNewSandbox(newest)
	default:
		c.inSandbox(newest.id)
	}
	return c.plan
}

// A computation is one run of Compute: the input and the plan so far.
type computation struct {
	Input
	outcome podspec.Outcome
	sandbox string // the current sandbox, "" if there is none; set before the first historyOf
	plan    Plan

	// The computed histories. Those of most pods fit into cached, which avoids
	// allocations.
	cached [8]containerHistory
	more   []containerHistory
}

// inSandbox plans a pod with a usable sandbox.
func (c *computation) inSandbox(id string) {
	c.sandbox = id
	c.plan.SandboxID = id
	c.killStrayInstances()
	c.ephemeralContainers()
	switch c.initContainers() {
	case initFailed:
		c.killPod(KillInitFailed)
	case initDone:
		if !c.regularContainers() {
			c.killPod(KillCompleted)
		}
	case initPending: // regular containers wait
	}
	c.resizePod()
}

// whileDeleted plans a pod with a deletion timestamp: nothing is started or replaced (rule
// rt-31). Running containers are stopped by the pod's termination, not by plans; the pod is
// stopped once none of them runs.
func (c *computation) whileDeleted(s sandbox) {
	if s.changed {
		c.plan.Changed = s.reason
		c.killPod(KillSandboxChanged)
		return
	}
	c.sandbox, c.plan.SandboxID = s.id, s.id
	for i := range c.Pod.Spec.InitContainers {
		ct := &c.Pod.Spec.InitContainers[i]
		if !podspec.IsSidecar(ct) && c.historyOf(ct).runs != nil {
			c.plan.Waits = "init container " + ct.Name + " to exit"
			return
		}
	}
	for i := range c.Pod.Spec.Containers {
		if ct := &c.Pod.Spec.Containers[i]; c.historyOf(ct).runs != nil {
			c.plan.Waits = "container " + ct.Name + " to exit"
			return
		}
	}
	c.killPod(KillCompleted)
}

// killPod replaces the plan with one that only stops the pod, or is empty if nothing of the
// pod runs.
func (c *computation) killPod(reason string) {
	c.plan = Plan{Changed: c.plan.Changed}
	if c.hasRunning() {
		c.plan.KillPod = true
		c.plan.KillReason = reason
	}
}

// ephemeralContainers starts each ephemeral container that has never had an instance, also
// before the init containers are done; it runs once (rule rt-45), even if its instance was
// removed. An instance that was created but not started is started.
func (c *computation) ephemeralContainers() {
	for i := range c.Pod.Spec.EphemeralContainers {
		ct := (*v1.Container)(&c.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		h := c.historyOf(ct)
		switch {
		case h.newest == nil && h.restarts < 0 && !hasRun(c.Pod.Status.EphemeralContainerStatuses, ct.Name):
			c.start(Ephemeral, ct, h, step{reason: StartNew})
		case c.resumable(&h):
			c.start(Ephemeral, ct, h, step{reason: StartCreated})
		}
	}
}

// hasRun reports whether the status last reported for a container describes an instance that was
// started.
func hasRun(list []v1.ContainerStatus, name string) bool {
	return slices.ContainsFunc(list, func(s v1.ContainerStatus) bool {
		return s.Name == name && (s.State.Running != nil || s.State.Terminated != nil)
	})
}

// regularContainers plans the regular containers of an initialized pod. It returns false if
// the pod can be stopped: no container is kept, started or stopped.
//
// If the last running containers are stopped and not replaced, the plan contains only their
// kills, with their own messages and grace periods; the next plan stops the pod.
func (c *computation) regularContainers() (up bool) {
	last := false
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		h := c.historyOf(ct)
		s := c.regular(ct, h)
		switch {
		case s.reason != "":
			c.start(Regular, ct, h, s)
			up = true
		case s.kill != "":
			c.kill(Regular, ct, h.counts, s)
			last = true
		case s.keep:
			c.resize(Regular, ct, h.counts)
			up = true
		}
	}
	if !up && last {
		c.plan = Plan{SandboxID: c.plan.SandboxID, Kill: slices.DeleteFunc(c.plan.Kill, func(k Kill) bool {
			// Sidecars are not replaced. Stray instances are still stopped.
			return k.Kind != Regular && k.Reason != KillDuplicate && k.Reason != KillOldSandbox
		})}
		return true
	}
	return up
}

// A step is the start of one container and the preceding kill. The zero value does nothing.
type step struct {
	reason  string // a Start constant; "" for no start
	kill    string // a Kill constant; "" for no kill
	message string // of the kill
	grace   *int64 // of the kill
	keep    bool   // the running instance is kept; it may be resized
}

// regular plans one regular container (rules rt-31 to rt-34, rt-47 to rt-49).
func (c *computation) regular(ct *v1.Container, h history) step {
	if h.counts == nil {
		if !c.outcome.RunsInNewSandbox(ct, h.newest) {
			return step{} // it has terminated; neither a new sandbox nor the removal of its instance restarts it
		}
		return step{reason: fresh(h)}
	}
	switch h.counts.State {
	case runtime.ContainerRunning:
		f := c.killReasonOf(ct, &h, h.counts)
		if f.kill == "" {
			return step{keep: true}
		}
		s := step{kill: f.kill, message: "Container " + ct.Name + " " + f.text, grace: f.grace()}
		if f.replaced(c.Pod, ct) {
			s.reason = f.kill
			if f.kill != KillResize { // its message has no such suffix in the kubelet
				s.message += ", will be restarted"
			}
		}
		return s
	case runtime.ContainerExited:
		if c.outcome.After(ct, podspec.ExitOf(h.counts)) == podspec.NoRestart {
			return step{}
		}
		return step{reason: StartExited}
	case runtime.ContainerCreated:
		return step{reason: StartCreated}
	default:
		// It counts as killed, so a container that may not restart is only stopped: it
		// must not run twice, and its status reports an exit.
		if c.outcome.After(ct, podspec.ExitOf(h.counts)) == podspec.NoRestart {
			if !c.mayRun(h.counts) {
				return step{}
			}
			return step{kill: KillUnknownState, message: unknownStateMessage(Regular, h.counts.State)}
		}
		return step{reason: StartUnknownState}
	}
}

// fresh returns the reason to start a container without an instance in the sandbox.
func fresh(h history) string {
	if h.newest == nil {
		return StartNew
	}
	return StartNewSandbox
}

// start adds the start of ct to the plan, and the kills that prevent a duplicate: of the
// instance that s replaces, and of instances in an unknown state.
func (c *computation) start(kind Kind, ct *v1.Container, h history, s step) {
	if s.kill != "" {
		c.kill(kind, ct, h.counts, s)
	}
	for inst := range c.instances(ct.Name) {
		if inst.State == runtime.ContainerUnknown && c.mayRun(inst) {
			c.kill(kind, ct, inst, step{reason: s.reason, kill: KillUnknownState, message: unknownStateMessage(kind, inst.State)})
		}
	}
	st := Start{
		Kind:         kind,
		Name:         ct.Name,
		Container:    ct,
		Reason:       s.reason,
		RestartCount: h.nextCount(),
		NoStatus:     h.newest == nil,
		Last:         h.exited,
	}
	if h.exited != nil && c.Backoff != nil {
		st.Delay, st.NotBefore = c.Backoff.Peek(c.Pod, ct, since(c.History.FirstRestartCounts[ct.Name], c.exited(ct.Name)), c.Now)
	}
	if s.reason == StartCreated && c.resumable(&h) {
		st.Resume = h.counts.ID
		st.RestartCount = h.counts.RestartCount
		st.NotBefore = time.Time{} // it was created after the delay
	}
	st.Why = c.startText(&st, h)
	c.plan.Start = append(c.plan.Start, st)
}

// kill adds the kill of inst for the reason of s to the plan. If s also starts the container,
// inst is replaced.
func (c *computation) kill(kind Kind, ct *v1.Container, inst *runtime.ContainerStatus, s step) {
	c.plan.Kill = append(c.plan.Kill, Kill{
		Kind: kind, ID: inst.ID, Name: ct.Name, Container: ct,
		Reason: s.kill, Message: s.message, GracePeriodSeconds: s.grace,
	})
	if s.reason != "" {
		c.plan.Replaced = append(c.plan.Replaced, Replaced{ct.Name, inst.ID})
	}
}
