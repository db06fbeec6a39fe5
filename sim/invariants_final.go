package sim

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// finalInvariants are the invariants of the final state: each is checked for every pod
// at the end of a run, after a period without faults.
func finalInvariants() []Invariant {
	return []Invariant{{
		Name: "finally-cleaned-up", Rules: "inv-18, rt-129, sl-56",
		Description: "finally, the runtime has no container or sandbox of a pod that is not desired",
		newCheck:    onSettled(finallyCleanedUp),
	}, {
		Name: "finally-deleted", Rules: "inv-9, st-64",
		Description: "finally, a pod with a deletionTimestamp has been deleted from the API",
		newCheck:    onSettled(finallyDeleted),
	}, {
		Name: "finally-running", Rules: "inv-14, inv-16, rt-91, sl-62",
		Description: "finally, each container of a pod runs with the latest spec, has terminated and will not restart, or is in back-off; and no pod is past its deadline",
		newCheck:    onSettled(finallyRunning),
	}, {
		Name: "finally-reported", Rules: "inv-12, st-25",
		Description: "finally, the last reported status of each container matches the runtime, and the phase matches the containers",
		newCheck:    onSettled(finallyReported),
	}}
}

// onSettled returns a newCheck that applies check to each pod at the end of a run.
func onSettled(check func(t *truth, p *podTruth) string) func(*truth) func(*Entry) string {
	return func(t *truth) func(*Entry) string {
		return func(e *Entry) string {
			if e.Kind != PodSettled {
				return ""
			}
			return check(t, t.pod(e.UID))
		}
	}
}

func finallyCleanedUp(t *truth, p *podTruth) string {
	if p.desired != nil {
		return ""
	}
	if running := p.running(); len(running) > 0 {
		return fmt.Sprintf("%s runs", running[0].ID)
	}
	if n := len(p.instances) + len(p.sandboxes); n > 0 {
		return fmt.Sprintf("%d exited containers and sandboxes remain", n)
	}
	return ""
}

func finallyDeleted(_ *truth, p *podTruth) string {
	if p.desired != nil && p.desired.DeletionTimestamp != nil {
		return "the pod still exists"
	}
	return ""
}

// stopBound is the longest grace period plus the time to observe the exit: an agent that
// stops one container reports the others after the stop.
const stopBound = 45 * time.Second

// backOffBound is the longest back-off plus the time to observe its end.
const backOffBound = 5*time.Minute + 30*time.Second

// claimReturned reports whether the pod has a claim of a pod that was added again, itself or another one: while that
// was away, the claim may have been allocated to others, with another device, and it is still prepared with the one
// before. An API server gives a UID once.
func (t *truth) claimReturned(p *podTruth) bool {
	for _, other := range t.pods {
		if other.incarnations > 1 && slices.ContainsFunc(claimsOf(p.spec), func(name string) bool { return other.claims[name] }) {
			return true
		}
	}
	return false
}

func finallyRunning(t *truth, p *podTruth) string {
	if p.desired == nil || p.desired.DeletionTimestamp != nil {
		return ""
	}
	if p.status == nil {
		return "no status was reported"
	}
	if status.Terminal(p.status.Phase) {
		if running := p.running(); len(running) > 0 {
			return fmt.Sprintf("the phase is %s, and %s runs", p.status.Phase, running[0].ID)
		}
		return ""
	}
	spec := &p.desired.Spec
	if d := spec.ActiveDeadlineSeconds; d != nil && p.status.StartTime != nil {
		if late := t.now.Sub(p.status.StartTime.Add(time.Duration(*d) * time.Second)); late > 2*time.Minute {
			return fmt.Sprintf("the deadline was %v ago", late)
		}
	}
	if t.claimReturned(p) {
		return ""
	}
	over := len(spec.Containers) > 0
	for i := range spec.Containers {
		n := t.lastInstance(p, spec.Containers[i].Name)
		over = over && n != nil && p.final(n)
	}
	if over && p.deleted {
		return "" // the agent may know the exits of the pod that had this UID
	}
	if over && t.now.Sub(p.lastChange) > time.Minute {
		return fmt.Sprintf("all containers have terminated, and the phase is %s", p.status.Phase)
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		n := p.newest(c.Name)
		if n == nil && !podspec.IsSidecar(c) && p.succeeded(c.Name) {
			continue
		}
		if why := startOverdue(t, p, c, n); why != "" {
			return why
		}
		if n == nil || !podspec.IsSidecar(c) && (n.State != runtime.ContainerExited || n.ExitCode != 0) {
			return "" // later containers have to wait
		}
	}
	for i := range spec.Containers {
		if why := startOverdue(t, p, &spec.Containers[i], t.lastInstance(p, spec.Containers[i].Name)); why != "" {
			return why
		}
	}
	return ""
}

// lastInstance returns the newest instance of the named container. If the machine keeps
// records, a removed instance counts too if it has terminated and will not restart.
func (t *truth) lastInstance(p *podTruth, name string) *runtime.ContainerStatus {
	if n := p.newest(name); n != nil || !t.keepsRecords || p.static {
		return n
	}
	// Only the newest counts: an earlier one may be of an incarnation with another spec.
	var newest *runtime.ContainerStatus
	for _, c := range p.allInstances {
		if c.Name == name && (newest == nil || c.CreatedAt.After(newest.CreatedAt)) {
			newest = c
		}
	}
	if newest == nil || !p.final(newest) {
		return nil
	}
	return newest
}

// succeeded reports whether an instance of an init container has succeeded in a ready
// sandbox, even if it has been removed, or before the checkpoint from which the sandbox was
// restored: the containers after it do not wait again.
func (p *podTruth) succeeded(name string) bool {
	ready := p.readySandboxes()
	if slices.ContainsFunc(ready, func(id string) bool { return p.restored[id] != nil }) {
		return true
	}
	for _, c := range p.allInstances {
		if c.Name == name && c.State == runtime.ContainerExited && c.ExitCode == 0 && slices.Contains(ready, c.SandboxID) {
			return true
		}
	}
	return false
}

// startOverdue returns why a container does not run as it should; empty: it does, or it
// has a reason not to.
func startOverdue(t *truth, p *podTruth, c *v1.Container, n *runtime.ContainerStatus) string {
	soon := time.Minute
	if podspec.MayRestartAll(p.desired) {
		soon = backOffBound // it may be in back-off with its instance removed
	}
	switch {
	case n == nil && t.now.Sub(p.lastChange) > soon:
		return fmt.Sprintf("%s was not started", c.Name)
	case n == nil:
	case n.State == runtime.ContainerRunning && n.Image != c.Image && t.now.Sub(p.lastChange) > time.Minute:
		return fmt.Sprintf("%s runs %s instead of %s", c.Name, n.Image, c.Image)
	case n.State == runtime.ContainerExited && !p.final(n) && t.now.Sub(n.FinishedAt) > backOffBound:
		return fmt.Sprintf("%s exited %v ago and was not restarted", c.Name, t.now.Sub(n.FinishedAt))
	}
	return ""
}

// initializesAgain reports whether a container is an init container that runs again in a new sandbox, and whose
// restart policy does not allow that after it has succeeded.
func (p *podTruth) initializesAgain(name string) bool {
	c, init := p.container(name)
	return init && c != nil && !podspec.IsSidecar(c) && p.desired.Spec.RestartPolicy != v1.RestartPolicyAlways
}

func finallyReported(t *truth, p *podTruth) string {
	if p.desired == nil || p.status == nil || t.now.Sub(p.lastChange) < stopBound {
		return ""
	}
	running := 0
	for c := range containerStatuses(p.status) {
		n := p.newest(c.Name)
		switch {
		case p.containersRemoved && (!t.keepsRecords || p.static) && n != nil && c.State.Terminated != nil && c.ContainerID != n.ID:
			// An operator removed the records, and a terminated container was started
			// again: its reported termination does not change (rule st-50).
		case p.initializesAgain(c.Name) && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0 && n != nil && c.ContainerID != n.ID:
			// The API server refuses that it is no longer terminated (rule st-50).
		case n == nil:
			if c.State.Running != nil {
				return fmt.Sprintf("%s is reported as running, and has no instance", c.Name)
			}
		case n.State == runtime.ContainerRunning:
			if c.State.Running == nil || c.ContainerID != n.ID {
				return fmt.Sprintf("%s runs, the status is %v", n.ID, statusSummary(p.status))
			}
			running++
		case c.State.Running != nil:
			return fmt.Sprintf("%s has exited, the status is %v", n.ID, statusSummary(p.status))
		case c.State.Terminated != nil && c.ContainerID != n.ID && c.State.Terminated.Reason != "ContainerStatusUnknown":
			return fmt.Sprintf("%s is the newest instance, %s is reported", n.ID, c.ContainerID)
		}
	}
	if running == len(p.desired.Spec.Containers)+len(p.desired.Spec.InitContainers) && p.status.Phase != v1.PodRunning {
		return fmt.Sprintf("all containers run, and the phase is %s", p.status.Phase)
	}
	return ""
}
