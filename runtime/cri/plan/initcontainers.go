package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// initState is the progress of the init containers of a pod.
type initState int

const (
	initPending initState = iota // regular containers must wait
	initDone                     // regular containers may start
	initFailed                   // one failed and will not restart: the pod has failed
)

// waitsForInit is Plan.Waits while regular containers wait for init containers.
const waitsForInit = "the init containers"

// initContainers plans the init containers, including sidecars.
//
// The front is the last init container with an instance in the sandbox. Once it has
// succeeded or, if it is a sidecar, has started, the next one is started. Behind the front,
// sidecars are kept running and the others are ignored (rules rt-55 to rt-57, rt-69). The
// loop runs from the last to the first to find the front.
func (c *computation) initContainers() initState {
	list := c.Pod.Spec.InitContainers
	if len(list) == 0 {
		return initDone
	}
	done := c.regularBegun()
	behind := done   // whether the loop is behind the front
	var room [8]step // enough for most pods
	steps := room[:]
	if len(list) > len(steps) {
		steps = make([]step, len(list))
	}
	for i := len(list) - 1; i >= 0; i-- {
		ct := &list[i]
		h := c.historyOf(ct)
		sidecar := podspec.IsSidecar(ct)
		if h.counts == nil {
			if behind && sidecar {
				steps[i] = step{reason: fresh(h)}
			}
			continue
		}
		if behind && !sidecar {
			continue
		}
		passed := false // whether the next one may start
		switch {
		case sidecar:
			steps[i], passed = c.sidecar(ct, h)
			if !passed && !done && steps[i].keep {
				c.plan.Waits = "init container " + ct.Name + " to pass its startup probe"
			}
		case h.counts.State == runtime.ContainerCreated:
			steps[i] = step{reason: StartCreated}
		case h.counts.State == runtime.ContainerRunning:
			if resizeRestarts(c.Pod, ct, h.counts.Resources) {
				steps[i] = step{reason: StartResize, kill: KillResize, message: "Init container " + ct.Name + " resize requires restart"}
				break
			}
			steps[i] = step{keep: true}
			c.plan.Waits = "init container " + ct.Name + " to exit"
		case c.succeeded(ct, h.counts):
			passed = true
		case c.outcome.InitFailed(ct, h.counts):
			return initFailed
		case h.counts.State == runtime.ContainerExited:
			steps[i] = step{reason: StartExited}
		default:
			steps[i] = step{reason: StartUnknownState}
		}
		if passed && !behind {
			if i == len(list)-1 {
				done = true
			} else {
				steps[i+1] = step{reason: fresh(c.historyOf(&list[i+1]))}
			}
		}
		behind = true
	}
	if !behind {
		steps[0] = step{reason: fresh(c.historyOf(&list[0]))}
	}
	for i := range list {
		switch ct := &list[i]; {
		case steps[i].reason != "":
			c.start(Init, ct, c.historyOf(ct), steps[i])
		case steps[i].keep:
			c.resize(Init, ct, c.historyOf(ct).counts)
		}
	}
	if done {
		return initDone
	}
	if c.plan.Waits == "" {
		c.plan.Waits = waitsForInit
	}
	return initPending
}

// regularBegun reports whether a regular container has an instance, in any state, in the
// current sandbox (rule rt-54). Instances in former sandboxes do not count, for example after
// a reboot.
func (c *computation) regularBegun() bool {
	for i := range c.Pod.Spec.Containers {
		if c.historyOf(&c.Pod.Spec.Containers[i]).counts != nil {
			return true
		}
	}
	return false
}

// sidecar plans a restartable init container with an instance: it is kept running
// regardless of the pod's restart policy (rules rt-60 to rt-63). started reports whether it
// runs, is not replaced, and has passed its startup probe, so that the next one may start.
func (c *computation) sidecar(ct *v1.Container, h history) (s step, started bool) {
	switch h.counts.State {
	case runtime.ContainerRunning:
		if f := c.killReasonOf(ct, &h, h.counts); f.kill != "" {
			return step{
				reason:  f.kill,
				kill:    f.kill,
				message: "Init container " + ct.Name + " " + f.text,
				grace:   f.grace(),
			}, false
		}
		return step{keep: true}, c.startedUp(ct, h.counts)
	case runtime.ContainerExited:
		return step{reason: StartExited}, false
	case runtime.ContainerCreated:
		return step{reason: StartCreated}, false
	default:
		return step{reason: StartUnknownState}, false
	}
}

// succeeded reports whether inst, an instance of a container, has succeeded.
func (c *computation) succeeded(ct *v1.Container, inst *runtime.ContainerStatus) bool {
	return inst.State == runtime.ContainerExited && podspec.Succeeded(c.Pod, ct, podspec.ExitOf(inst))
}
