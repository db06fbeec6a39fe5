package plan

import (
	"iter"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A history summarizes the instances of one container. Decisions depend only on the
// instances in the current sandbox; restart counts span all sandboxes.
type history struct {
	// counts is the instance in the current sandbox on which decisions depend: the
	// running one that is kept, else the newest; nil if the sandbox has none.
	counts *runtime.ContainerStatus

	runs   *runtime.ContainerStatus // counts, if it is running
	newest *runtime.ContainerStatus // of all sandboxes
	exited *runtime.ContainerStatus // the newest that has exited, of all sandboxes and History.Exits

	restarts int32 // the highest restart count; -1 if there is none

	hash uint64 // of the spec; only set if an instance in the sandbox runs or was created
}

// A containerHistory is the cached history of one container of the spec.
type containerHistory struct {
	of *v1.Container
	history
}

// historyOf returns the history of ct, which it computes once. Pods have few containers, so
// a linear search is cheaper than a map.
func (c *computation) historyOf(ct *v1.Container) history {
	for i := range c.cached {
		switch c.cached[i].of {
		case ct:
			return c.cached[i].history
		case nil:
			c.cached[i] = containerHistory{ct, c.gather(ct)}
			return c.cached[i].history
		}
	}
	for i := range c.more {
		if c.more[i].of == ct {
			return c.more[i].history
		}
	}
	h := c.gather(ct)
	c.more = append(c.more, containerHistory{ct, h})
	return h
}

// resetHistories drops the cached histories, because c.sandbox has changed.
func (c *computation) resetHistories() {
	c.cached, c.more = [len(c.cached)]containerHistory{}, nil
}

// gather computes the history of ct. A container runs if any of its instances does, even if
// a newer one does not. Of several that run in the sandbox, the newest that was created from
// the current spec and fails no probe is kept, else the newest.
func (c *computation) gather(ct *v1.Container) history {
	h := history{restarts: -1}
	if n, ok := c.History.RestartCounts[ct.Name]; ok {
		h.restarts = n
	}
	fits := false // whether runs need not be replaced
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
			fits = !isRedefined(inst, h.hash) && !c.failed(inst)
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

// newer reports whether the exit in History, was, is newer than inst, the newest in the
// runtime; nil if there is none.
func newer(was, inst *runtime.ContainerStatus) bool {
	return inst == nil || was.RestartCount > inst.RestartCount
}

// nextCount returns the restart count of the next instance (rule rt-75).
func (h *history) nextCount() int32 {
	if h.restarts == math.MaxInt32 {
		return h.restarts // must not overflow
	}
	return max(h.restarts+1, 0)
}

// resumable reports whether the instance that counts can be started instead of creating
// another: it was created, not started, from the current spec, and is the latest attempt. An
// unknown hash does not match.
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

// exited returns the exited instances of the named container, newest first, including that
// of History.Exits unless the runtime still has it.
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

// killStrayInstances stops each running instance of the pod's containers except the one
// that counts: duplicates in the sandbox, and instances in former sandboxes. The instances
// of a container are stopped newest first.
func (c *computation) killStrayInstances() {
	for kind, ct := range c.containers() {
		runs := c.historyOf(ct).runs
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

// hasRunning reports whether a sandbox or container of the pod runs or may run.
func (c *computation) hasRunning() bool {
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

// mayRun reports whether the instance runs, or may run because its state is unknown.
// Stopping a sandbox stops its containers, so an instance in an unknown state does not run
// if its sandbox is not ready.
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
