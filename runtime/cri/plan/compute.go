package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// Compute returns the next step towards in.Pod (rt-31 … rt-69, rt-138 … rt-143, al-14, al-15).
//
// It is a pure function: the same input gives the same plan, nothing of the
// input is changed, and nothing outside of it is looked at. It never panics,
// whatever the runtime claims to hold. Carrying the plan out and computing
// again comes to a plan with nothing to do, unless containers exit (inv-16).
func Compute(in Input) Plan {
	if in.Pod == nil {
		return Plan{}
	}
	if in.Status == nil {
		in.Status = new(runtime.PodStatus)
	}
	c := computation{Input: in}
	newest := judgeSandbox(in.Pod, in.Status)
	newest.attempt = max(newest.attempt, in.History.SandboxAttempts)
	switch {
	case in.Pod.DeletionTimestamp != nil:
		c.whileDeleted(newest)
	case c.restartAll(newest):
		// rt-40: nothing else is planned
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
	sandbox string // the sandbox that instances must be in to count; set before the first look; "" if there is none
	plan    Plan

	// The histories gathered so far: of most pods all fit into looked, so that
	// looking allocates nothing.
	looked [8]memo
	more   []memo
}

// inSandbox plans for a pod whose sandbox is fine.
func (c *computation) inSandbox(id string) {
	c.sandbox = id
	c.plan.SandboxID = id
	c.killStrays()
	c.ephemeralContainers()
	switch c.initContainers() {
	case initFailed:
		c.killPod(KillInitFailed) // rt-64, rt-66
	case initDone:
		if !c.regularContainers() {
			c.killPod(KillCompleted) // rt-50, rt-51
		}
	case initPending: // rt-46: nothing of the rest is looked at
	}
	c.resizePod()
}

// whileDeleted plans for a pod whose deletion was requested: nothing is
// started any more (rt-31) and nothing is replaced. Ending what runs in order
// and in time is termination's; only a pod that has nothing left to wait for is
// stopped here.
func (c *computation) whileDeleted(s sandbox) {
	if s.changed {
		c.plan.Changed = s.why
		c.killPod(KillSandboxChanged)
		return
	}
	c.sandbox, c.plan.SandboxID = s.id, s.id
	for i := range c.Pod.Spec.InitContainers {
		ct := &c.Pod.Spec.InitContainers[i]
		if !podspec.IsSidecar(ct) && c.look(ct).runs != nil {
			c.plan.Waits = "init container " + ct.Name + " to exit"
			return
		}
	}
	for i := range c.Pod.Spec.Containers {
		if ct := &c.Pod.Spec.Containers[i]; c.look(ct).runs != nil {
			c.plan.Waits = "container " + ct.Name + " to exit"
			return
		}
	}
	c.killPod(KillCompleted)
}

// killPod makes the plan one that only stops the pod, if there is anything to
// stop: a pod that is down already needs no step.
func (c *computation) killPod(reason string) {
	c.plan = Plan{Changed: c.plan.Changed}
	if c.somethingRuns() {
		c.plan.KillPod = true
		c.plan.KillReason = reason
	}
}

// ephemeralContainers starts each ephemeral container that never had an
// instance, in any sandbox and also before init is done: it gets one run
// (rt-45). An instance that was created but never started had none yet.
func (c *computation) ephemeralContainers() {
	for i := range c.Pod.Spec.EphemeralContainers {
		ct := (*v1.Container)(&c.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		h := c.look(ct)
		switch {
		case h.newest == nil:
			c.start(Ephemeral, ct, h, step{reason: StartNew})
		case c.resumable(&h):
			c.start(Ephemeral, ct, h, step{reason: StartCreated})
		}
	}
}

// regularContainers plans for the regular containers of an initialised pod
// (rt-47 … rt-49). It returns false if none keeps the pod up: none runs and
// stays, and none is to be started.
//
// If the last that run are to be stopped and not replaced, then stopping them
// in their own way, with the message and the grace period that are due, is all
// the plan has; the next one stops the pod.
func (c *computation) regularContainers() (up bool) {
	last := false
	for i := range c.Pod.Spec.Containers {
		ct := &c.Pod.Spec.Containers[i]
		h := c.look(ct)
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
			// Sidecars are not replaced any more. Strays go as always.
			return k.Kind != Regular && k.Reason != KillDuplicate && k.Reason != KillOldSandbox
		})}
		return true
	}
	return up
}

// A step is the start of one container and the kill that goes before it. The
// zero value leaves the container as it is.
type step struct {
	reason  string // a Start* reason; "" does not start it
	kill    string // a Kill* reason; "" stops nothing
	message string // of the kill
	grace   *int64 // of the kill
	keep    bool   // the instance that runs stays; it may be resized
}

// regular decides on one regular container (rt-31 … rt-34, rt-47 … rt-49).
func (c *computation) regular(ct *v1.Container, h history) step {
	if h.counts == nil {
		if h.newest != nil && c.exitVerdict(ct, h.newest) == podspec.NoRestart {
			return step{} // it is over, and a new sandbox does not bring it back (rt-42)
		}
		if h.newest == nil && c.overOnRecord(ct) {
			return step{} // nor does it that its instance was taken away
		}
		return step{reason: fresh(h)}
	}
	switch h.counts.State {
	case runtime.ContainerRunning:
		f := c.flawOf(ct, &h, h.counts)
		if f.kill == "" {
			return step{keep: true}
		}
		s := step{kill: f.kill, message: "Container " + ct.Name + " " + f.words, grace: f.grace()}
		if f.replaced(c.Pod, ct) {
			s.reason = f.kill
			if f.kill != KillResize { // al-15 has its own words
				s.message += ", will be restarted"
			}
		}
		return s
	case runtime.ContainerExited:
		if c.exitVerdict(ct, h.counts) == podspec.NoRestart {
			return step{}
		}
		return step{reason: StartExited}
	case runtime.ContainerCreated:
		return step{reason: StartCreated}
	default:
		return step{reason: StartUnknownState}
	}
}

// overOnRecord reports whether a container is known to have exited for good though
// the runtime holds nothing of it.
func (c *computation) overOnRecord(ct *v1.Container) bool {
	code, ok := c.History.Terminated[ct.Name]
	return ok && !podspec.MayRestartAll(c.Pod) && c.after(ct, code) == podspec.NoRestart
}

// killed is the exit code taken for an instance whose own is not known: 128+9,
// as of a process that got SIGKILL. A success is never guessed.
const killed = 137

// exitVerdict returns what follows inst by the container's rules and policies
// (rt-33, rt-34). An instance that is not seen to have exited, but will not run
// on because its sandbox is gone, counts as killed; one that never started has
// not had its run.
func (c *computation) exitVerdict(ct *v1.Container, inst *runtime.ContainerStatus) podspec.ExitAction {
	switch inst.State {
	case runtime.ContainerExited:
		return c.after(ct, inst.ExitCode)
	case runtime.ContainerCreated:
		return podspec.RestartContainer
	default:
		return c.after(ct, killed)
	}
}

// after returns what follows an exit with the code (rt-33).
func (c *computation) after(ct *v1.Container, exitCode int32) podspec.ExitAction {
	if c.IgnoreRestartAll {
		return podspec.ActionAfterExitWithoutAll(c.Pod, ct, exitCode)
	}
	return podspec.ActionAfterExit(c.Pod, ct, exitCode)
}

// fresh returns the reason to start a container that has no instance in the
// sandbox.
func fresh(h history) string {
	if h.newest == nil {
		return StartNew
	}
	return StartNewSandbox
}

// start adds the start of ct to the plan. Before it come the kills that make
// sure no second copy runs: of the instance s condemns, and of each instance
// whose state the runtime does not know.
func (c *computation) start(kind Kind, ct *v1.Container, h history, s step) {
	if s.kill != "" {
		c.kill(kind, ct, h.counts, s)
	}
	for inst := range c.instances(ct.Name) {
		if inst.State == runtime.ContainerUnknown && c.mayRun(inst) {
			c.kill(kind, ct, inst, step{kill: KillUnknownState, message: unknownStateMessage(kind, inst.State)})
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
	if s.reason == StartCreated && c.resumable(&h) {
		st.Resume = h.counts.ID
		st.RestartCount = h.counts.RestartCount
	} else if h.exited != nil && c.Backoff != nil {
		st.Delay, st.NotBefore = c.Backoff.Peek(c.Pod, ct, since(c.History.FirstRestartCounts[ct.Name], c.exited(ct.Name)), c.Now)
	}
	st.Why = c.why(&st, h)
	c.plan.Start = append(c.plan.Start, st)
}

// kill adds the stop of inst to the plan, as s has it.
func (c *computation) kill(kind Kind, ct *v1.Container, inst *runtime.ContainerStatus, s step) {
	c.plan.Kill = append(c.plan.Kill, Kill{
		Kind: kind, ID: inst.ID, Name: ct.Name, Container: ct,
		Reason: s.kill, Message: s.message, GracePeriodSeconds: s.grace,
	})
}
