package plan

import (
	"iter"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A history is what the instances of one container say about it.
//
// Decisions follow the instances of the current sandbox only: those of former
// sandboxes tell nothing about what has been done in this one. Numbers
// run on over all sandboxes.
type history struct {
	// counts is the instance of the current sandbox that decides: the running
	// one that is kept, else the newest; nil if the sandbox has none.
	counts *runtime.ContainerStatus

	runs   *runtime.ContainerStatus // counts, if it is running
	newest *runtime.ContainerStatus // of all sandboxes
	exited *runtime.ContainerStatus // the newest that has exited, of all sandboxes, or that is on record

	restarts int32 // the highest restart count known; -1 if there was none

	hash uint64 // of the present spec; only set if an instance in the sandbox runs or was created
}

// A memo is the history of one container of the spec.
type memo struct {
	of *v1.Container
	history
}

// look returns the history of ct, which it gathers once. Pods have few
// containers: a walk through the memos is cheaper than a map.
func (c *computation) look(ct *v1.Container) history {
	for i := range c.looked {
		switch c.looked[i].of {
		case ct:
			return c.looked[i].history
		case nil:
			c.looked[i] = memo{ct, c.gather(ct)}
			return c.looked[i].history
		}
	}
	for i := range c.more {
		if c.more[i].of == ct {
			return c.more[i].history
		}
	}
	h := c.gather(ct)
	c.more = append(c.more, memo{ct, h})
	return h
}

// forget drops the histories, because instances are to count by another
// sandbox.
func (c *computation) forget() {
	c.looked, c.more = [len(c.looked)]memo{}, nil
}

// gather makes the history of ct. Any running instance makes the container
// running, also if a newer one is not (lq-12). Of several that run in the
// sandbox the newest made from the present spec that fails no probe is kept,
// else the newest.
func (c *computation) gather(ct *v1.Container) history {
	h := history{restarts: -1}
	if n, ok := c.History.RestartCounts[ct.Name]; ok {
		h.restarts = n
	}
	fits := false // whether runs may stay
	for inst := range c.instances(ct.Name) {
		if h.newest == nil {
			h.newest = inst
		}
		if h.exited == nil && inst.State == runtime.ContainerExited {
			h.exited = inst
		}
		h.restarts = max(h.restarts, inst.RestartCount)
		if c.sandbox == "" || inst.SandboxID != c.sandbox {
			continue
		}
		if h.counts == nil {
			h.counts = inst
		}
		if h.hash == 0 && (inst.State == runtime.ContainerRunning || inst.State == runtime.ContainerCreated) {
			h.hash = Hash(ct)
		}
		if inst.State == runtime.ContainerRunning && !fits {
			fits = !redefined(inst, h.hash) && !c.failed(inst)
			if h.runs == nil || fits {
				h.runs = inst
			}
		}
	}
	if h.runs != nil {
		h.counts = h.runs
	}
	if was := c.History.Exits[ct.Name]; was != nil && newer(was, h.exited) {
		h.exited = was
	}
	return h
}

// newer reports whether the exit on record, was, is newer than inst, the newest
// that the runtime holds; nil if it holds none.
func newer(was, inst *runtime.ContainerStatus) bool {
	return inst == nil || was.RestartCount > inst.RestartCount
}

// nextCount returns the restart count of the next instance (rt-75).
func (h *history) nextCount() int32 {
	if h.restarts == math.MaxInt32 {
		return h.restarts // nonsense that came in goes out; it must not turn negative
	}
	return max(h.restarts+1, 0)
}

// resumable reports whether the instance that counts was made for this very
// start and only waits to be started (lq-13): created from the present spec,
// and the latest attempt. An unknown hash is not the present spec's.
func (c *computation) resumable(h *history) bool {
	return h.counts != nil && h.counts.State == runtime.ContainerCreated &&
		h.counts.RestartCount >= h.restarts && h.counts.Hash == h.hash
}

// instances yields the instances of the named container, newest first.
func (c *computation) instances(name string) iter.Seq[*runtime.ContainerStatus] {
	return func(yield func(*runtime.ContainerStatus) bool) {
		for i := range c.Status.Containers {
			if inst := &c.Status.Containers[i]; inst.Name == name && !yield(inst) {
				return
			}
		}
	}
}

// exited returns the instances of the named container that have exited, newest
// first, and among them the one on record, unless the runtime still holds it.
func (c *computation) exited(name string) []*runtime.ContainerStatus {
	var list []*runtime.ContainerStatus
	was := c.History.Exits[name]
	for inst := range c.instances(name) {
		if inst.State != runtime.ContainerExited {
			continue
		}
		if was != nil && was.RestartCount >= inst.RestartCount {
			if was.RestartCount > inst.RestartCount {
				list = append(list, was)
			}
			was = nil
		}
		list = append(list, inst)
	}
	if was != nil {
		list = append(list, was)
	}
	return list
}

// since returns instances with restart counts that begin with the instance whose count
// is first. Earlier instances have the count 0.
func since(first int32, exited []*runtime.ContainerStatus) []*runtime.ContainerStatus {
	if first <= 0 {
		return exited
	}
	list := make([]*runtime.ContainerStatus, len(exited))
	for i, inst := range exited {
		counted := *inst
		counted.RestartCount = max(inst.RestartCount-first, 0)
		list[i] = &counted
	}
	return list
}

// killStrays stops each running instance of the pod's containers that is not
// the one that counts: second copies in the sandbox (lq-12), and what runs in a
// sandbox that is not the pod's any more. Of one container the oldest goes
// last.
func (c *computation) killStrays() {
	for kind, ct := range c.containers() {
		runs := c.look(ct).runs
		for inst := range c.instances(ct.Name) {
			switch {
			case inst.State != runtime.ContainerRunning || inst == runs:
			case inst.SandboxID != c.sandbox:
				c.kill(kind, ct, inst, step{kill: KillOldSandbox, message: "Container " + ct.Name + " runs in a former sandbox of the pod"})
			default:
				c.kill(kind, ct, inst, step{kill: KillDuplicate, message: "Container " + ct.Name + " runs more than once"})
			}
		}
	}
}

// containers yields every container of the spec with its kind.
func (c *computation) containers() iter.Seq2[Kind, *v1.Container] {
	return func(yield func(Kind, *v1.Container) bool) {
		spec := &c.Pod.Spec
		for i := range spec.EphemeralContainers {
			if !yield(Ephemeral, (*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
		for i := range spec.InitContainers {
			if !yield(Init, &spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(Regular, &spec.Containers[i]) {
				return
			}
		}
	}
}

// somethingRuns reports whether anything of the pod runs or may run.
func (c *computation) somethingRuns() bool {
	for i := range c.Status.Sandboxes {
		if c.Status.Sandboxes[i].State != runtime.SandboxNotReady {
			return true
		}
	}
	for i := range c.Status.Containers {
		if c.mayRun(&c.Status.Containers[i]) {
			return true
		}
	}
	return false
}

// mayRun reports whether the instance runs, or is in a state that does not
// rule it out. Stopping a sandbox stops what is in it, so an instance that the
// runtime lost track of is dead where its sandbox is.
func (c *computation) mayRun(inst *runtime.ContainerStatus) bool {
	switch inst.State {
	case runtime.ContainerRunning:
		return true
	case runtime.ContainerUnknown:
		for i := range c.Status.Sandboxes {
			if s := &c.Status.Sandboxes[i]; s.ID == inst.SandboxID {
				return s.State != runtime.SandboxNotReady
			}
		}
		return true
	default:
		return false
	}
}
