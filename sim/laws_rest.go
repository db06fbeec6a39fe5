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

// restLaws are about what it comes to when nothing goes wrong any more: each is
// held against every pod at the end of a run.
func restLaws() []Invariant {
	return []Invariant{{
		Name: "rest-clean", Rules: "inv-18, rt-129, sl-56",
		Says:  "in the end, of a pod that nobody wants nothing is left",
		begin: atRest(restClean),
	}, {
		Name: "rest-deleted", Rules: "inv-9, st-64",
		Says:  "in the end, a pod that was to be deleted has gone from the API",
		begin: atRest(restDeleted),
	}, {
		Name: "rest-runs", Rules: "inv-14, inv-16, rt-91, sl-62",
		Says:  "in the end, each container of a pod runs as the last spec says, has exited for good, or rests for its back-off; and no pod is past its deadline",
		begin: atRest(restRuns),
	}, {
		Name: "rest-told", Rules: "inv-12, L-39, st-25",
		Says:  "in the end, what was told last of each container is what it is, and the phase is theirs",
		begin: atRest(restTold),
	}}
}

// atRest makes a law of what is to hold of each pod in the end.
func atRest(check func(t *truth, p *podTruth) string) func(*truth) func(*Entry) string {
	return func(t *truth) func(*Entry) string {
		return func(e *Entry) string {
			if e.Kind != Rested {
				return ""
			}
			return check(t, t.pod(e.UID))
		}
	}
}

func restClean(t *truth, p *podTruth) string {
	if p.wanted != nil {
		return ""
	}
	if running := p.running(); len(running) > 0 {
		return fmt.Sprintf("%s runs", running[0].ID)
	}
	if n := len(p.instance) + len(p.sandbox); n > 0 {
		return fmt.Sprintf("%d dead containers and sandboxes are left", n)
	}
	return ""
}

func restDeleted(_ *truth, p *podTruth) string {
	if p.wanted != nil && p.wanted.DeletionTimestamp != nil {
		return "it is still there"
	}
	return ""
}

// longestStop is the end of any grace period, with what it takes to see that: an
// agent that stops one container tells of the others when it is done.
const longestStop = 45 * time.Second

// longestRest is the end of any back-off, with what it takes to see that.
const longestRest = 5*time.Minute + 30*time.Second

func restRuns(t *truth, p *podTruth) string {
	if p.wanted == nil || p.wanted.DeletionTimestamp != nil {
		return ""
	}
	if p.said == nil {
		return "nothing was told of it"
	}
	if status.Terminal(p.said.Phase) {
		if running := p.running(); len(running) > 0 {
			return fmt.Sprintf("it is %s, and %s runs", p.said.Phase, running[0].ID)
		}
		return ""
	}
	spec := &p.wanted.Spec
	if stuck(p) {
		return ""
	}
	if d := spec.ActiveDeadlineSeconds; d != nil && p.said.StartTime != nil {
		if late := t.now.Sub(p.said.StartTime.Add(time.Duration(*d) * time.Second)); late > 2*time.Minute {
			return fmt.Sprintf("its deadline was %v ago", late)
		}
	}
	over := len(spec.Containers) > 0
	for i := range spec.Containers {
		n := t.last(p, spec.Containers[i].Name)
		over = over && n != nil && p.final(n)
	}
	if over && t.now.Sub(p.touched) > time.Minute {
		return fmt.Sprintf("all its containers have exited for good, and it is %s", p.said.Phase)
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		n := p.newest(c.Name)
		if n == nil && !podspec.IsSidecar(c) && p.succeeded(c.Name) {
			continue
		}
		if why := overdue(t, p, c, n); why != "" {
			return why
		}
		if n == nil || !podspec.IsSidecar(c) && (n.State != runtime.ContainerExited || n.ExitCode != 0) {
			return "" // those after it wait
		}
	}
	for i := range spec.Containers {
		if why := overdue(t, p, &spec.Containers[i], t.last(p, spec.Containers[i].Name)); why != "" {
			return why
		}
	}
	return ""
}

// stuck reports whether a pod of policy Never lost its sandbox before its regular
// containers had a turn. It is not begun anew and stays Pending, here as in the
// kubelet (rt-41).
func stuck(p *podTruth) bool {
	return p.wanted.Spec.RestartPolicy == v1.RestartPolicyNever && len(p.ready()) == 0 && len(p.instance) > 0 && p.said.Phase == v1.PodPending
}

// last is newest, but that a runtime which remembers knows of what has exited for
// good also when that was removed.
func (t *truth) last(p *podTruth, name string) *runtime.ContainerStatus {
	if n := p.newest(name); n != nil || !t.remembers || p.static {
		return n
	}
	// The newest of them: one before it may be of a life under another spec.
	var newest *runtime.ContainerStatus
	for _, c := range p.ever {
		if c.Name == name && (newest == nil || c.CreatedAt.After(newest.CreatedAt)) {
			newest = c
		}
	}
	if newest == nil || !p.final(newest) {
		return nil
	}
	return newest
}

// succeeded reports whether an instance of an init container has, in the sandbox
// that is ready, though it may be gone: what runs there does not wait for another.
func (p *podTruth) succeeded(name string) bool {
	ready := p.ready()
	for _, c := range p.ever {
		if c.Name == name && c.State == runtime.ContainerExited && c.ExitCode == 0 && slices.Contains(ready, c.SandboxID) {
			return true
		}
	}
	return false
}

// overdue reports what is wrong with a container that should run if it can.
func overdue(t *truth, p *podTruth, c *v1.Container, n *runtime.ContainerStatus) string {
	soon := time.Minute
	if podspec.MayRestartAll(p.wanted) {
		soon = longestRest // it may rest, and be removed already
	}
	switch {
	case n == nil && t.now.Sub(p.touched) > soon:
		return fmt.Sprintf("%s was not started", c.Name)
	case n == nil:
	case n.State == runtime.ContainerRunning && n.Image != c.Image && t.now.Sub(p.touched) > time.Minute:
		return fmt.Sprintf("%s runs %s, and should run %s", c.Name, n.Image, c.Image)
	case n.State == runtime.ContainerExited && !p.final(n) && t.now.Sub(n.FinishedAt) > longestRest:
		return fmt.Sprintf("%s exited %v ago, and was not started again", c.Name, t.now.Sub(n.FinishedAt))
	}
	return ""
}

func restTold(t *truth, p *podTruth) string {
	if p.wanted == nil || p.said == nil || t.now.Sub(p.touched) < longestStop {
		return ""
	}
	running := 0
	for c := range containerStatuses(p.said) {
		n := p.newest(c.Name)
		switch {
		case p.removed && (!t.remembers || p.static) && n != nil && c.State.Terminated != nil && c.ContainerID != n.ID:
			// An operator took the runtime's memory, and what had exited for good
			// was begun anew: its end stands (st-50).
		case n == nil:
			if c.State.Running != nil {
				return fmt.Sprintf("%s is told to run, and there is none", c.Name)
			}
		case n.State == runtime.ContainerRunning:
			if c.State.Running == nil || c.ContainerID != n.ID {
				return fmt.Sprintf("%s runs, and it is told as %v", n.ID, summary(p.said))
			}
			running++
		case c.State.Running != nil:
			return fmt.Sprintf("%s has exited, and it is told as %v", n.ID, summary(p.said))
		case c.State.Terminated != nil && c.ContainerID != n.ID && c.State.Terminated.Reason != "ContainerStatusUnknown":
			return fmt.Sprintf("%s is the newest, and %s is told", n.ID, c.ContainerID)
		}
	}
	if running == len(p.wanted.Spec.Containers)+len(p.wanted.Spec.InitContainers) && p.said.Phase != v1.PodRunning {
		return fmt.Sprintf("all its containers run, and it is %s", p.said.Phase)
	}
	return ""
}
