package chaos

import (
	"maps"
	"slices"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// runtime processes a complete list of the runtime: what has ended since the last one first, because something else
// may have been started instead.
func (c *checker) runtime(boxes []box, list []instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list = slices.SortedStableFunc(slices.Values(list), func(a, b instance) int { return a.CreatedAt.Compare(b.CreatedAt) })
	listed := map[string]bool{}
	for _, is := range list {
		listed[is.ID] = true
		if h := c.historyLocked(is.uid); h.instances[is.ID] != nil {
			c.instanceLocked(h, is)
		}
	}
	for _, h := range c.pods {
		for id := range h.running {
			if !listed[id] {
				c.addLocked(sim.Entry{Kind: sim.Removed, Container: h.instances[id]}, h)
				c.endedLocked(h, h.instances[id], "is gone")
			}
		}
	}
	for _, is := range list {
		if h := c.historyLocked(is.uid); h.instances[is.ID] == nil {
			created := is.ContainerStatus
			created.State = runtime.ContainerCreated
			h.instances[is.ID] = &created
			c.addLocked(sim.Entry{Kind: sim.Created, Container: &created}, h)
			c.instanceLocked(h, is)
		}
	}
	c.sandboxesLocked(boxes)
}

// instanceLocked processes an instance of the list. Its state is ContainerUnknown while it is not running and its exit
// code is not known.
func (c *checker) instanceLocked(h *podHistory, is instance) {
	if !h.terminalSince.IsZero() {
		c.checkLocked(terminalNeverRestarts, is.CreatedAt.Before(h.terminalSince), h.name, "%s attempt %d was created after phase %s was reported", is.Name, is.RestartCount, h.last.Status.Phase)
	}
	if before := h.instances[is.ID].State; is.State == before || before == runtime.ContainerExited {
		return
	}
	h.instances[is.ID] = &is.ContainerStatus
	switch is.State {
	case runtime.ContainerRunning:
		h.running[is.ID] = true
		c.addLocked(sim.Entry{Kind: sim.Started, Container: &is.ContainerStatus}, h)
	case runtime.ContainerExited:
		c.addLocked(sim.Entry{Kind: sim.Exited, Container: &is.ContainerStatus}, h)
		c.endedLocked(h, &is.ContainerStatus, "has exited")
	default:
		c.addLocked(sim.Entry{Kind: sim.Created, Container: &is.ContainerStatus}, h)
	}
}

// sandboxesLocked processes the sandboxes of the list.
func (c *checker) sandboxesLocked(boxes []box) {
	ready := map[string]box{}
	for _, b := range boxes {
		if h := c.historyLocked(b.uid); h.name == "" {
			h.name = b.name
		}
		if b.ready() {
			ready[b.ID] = b
		}
	}
	for id, b := range c.ready {
		if _, still := ready[id]; !still {
			c.addLocked(sim.Entry{Kind: sim.SandboxRemoved, Sandbox: &b.SandboxStatus}, c.pods[b.uid])
		}
	}
	for id, b := range ready {
		if _, before := c.ready[id]; !before {
			c.addLocked(sim.Entry{Kind: sim.SandboxReady, Sandbox: &b.SandboxStatus}, c.pods[b.uid])
		}
	}
	c.ready = ready
}

// endedLocked records that an instance is not running any more. An instance that was never
// observed running may not have started: an interrupted start is not a disturbance.
func (c *checker) endedLocked(h *podHistory, is *runtime.ContainerStatus, how string) {
	ran := h.running[is.ID]
	delete(h.running, is.ID)
	if h.shape == nil || !h.shape.longRunning || is.Name == "init" || !ran {
		return
	}
	excused := h.touched || h.healing > 0 || h.deletionRequested || h.deleted || h.last == nil
	c.checkLocked(undisturbed, excused, h.name, "%s attempt %d %s with %d", is.Name, is.RestartCount, how, is.ExitCode)
}

// exitObserved reports whether the exit of an instance was observed.
func (c *checker) exitObserved(is instance) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.historyLocked(is.uid).instances[is.ID]
	return before != nil && before.State == runtime.ContainerExited
}

// processes checks the processes of all containers. It inspects each of them a second time:
// two that still exist then were running at the same time.
func (c *checker) processes(list []process) {
	type container struct{ uid, name string }
	found := map[container]map[string]process{}
	for _, p := range list {
		of := container{p.uid, p.container}
		if found[of] == nil {
			found[of] = map[string]process{}
		}
		if _, ok := found[of][p.instance]; !ok {
			found[of][p.instance] = p
		}
	}
	for of, instances := range found {
		maps.DeleteFunc(instances, func(_ string, p process) bool { return len(instances) > 1 && !p.alive() })
		var pids []int
		for _, p := range instances {
			pids = append(pids, p.pid)
		}
		slices.Sort(pids)
		c.check(oneInstance, len(instances) <= 1, c.podName(of.uid), "processes %v are of different instances of %s", pids, of.name)
	}
}
