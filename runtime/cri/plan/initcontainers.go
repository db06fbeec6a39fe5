package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// initState is how far the init containers of a pod are.
type initState int

const (
	initPending initState = iota // not done: regular containers wait
	initDone                     // regular containers may start
	initFailed                   // one failed for good: the pod has failed
)

// waitsForInit is what the regular containers wait for.
const waitsForInit = "the init containers"

// initContainers plans for the init containers, sidecars among them (spec
// 4.8).
//
// At most one of them is new at a time: the one after the furthest that has an
// instance in this sandbox, once that one has succeeded or, a sidecar, has
// started. Behind that front sidecars are kept running and the others are left
// alone (rt-55 … rt-57, rt-69). Walking from the last to the first finds the
// front without looking at what came before it.
func (c *computation) initContainers() initState {
	list := c.Pod.Spec.InitContainers
	if len(list) == 0 {
		return initDone // rt-53
	}
	done := c.begun()
	behind := done   // whether the walk is behind the front
	var room [8]step // for most pods
	steps := room[:]
	if len(list) > len(steps) {
		steps = make([]step, len(list))
	}
	for i := len(list) - 1; i >= 0; i-- {
		ct := &list[i]
		h := c.look(ct)
		sidecar := podspec.IsSidecar(ct)
		if h.counts == nil {
			if behind && sidecar {
				steps[i] = step{reason: fresh(h)} // rt-56
			}
			continue
		}
		if behind && !sidecar {
			continue // rt-57
		}
		passed := false // whether the one after it may start
		switch {
		case sidecar:
			steps[i], passed = c.sidecar(ct, h)
			if !passed && !done && steps[i].keep {
				c.plan.Waits = "init container " + ct.Name + " to pass its startup probe" // rt-60
			}
		case h.counts.State == runtime.ContainerCreated:
			steps[i] = step{reason: StartCreated} // rt-58
		case h.counts.State == runtime.ContainerRunning:
			if resizeRestarts(ct, h.counts.Resources) {
				steps[i] = step{reason: StartResize, kill: KillResize, message: "Init container " + ct.Name + " resize requires restart"}
				break
			}
			steps[i] = step{keep: true}
			c.plan.Waits = "init container " + ct.Name + " to exit" // rt-59
		case succeeded(h.counts):
			passed = true // rt-65
		case c.initVerdict(ct, h.counts) == initFailed:
			return initFailed // rt-64, rt-66
		case h.counts.State == runtime.ContainerExited:
			steps[i] = step{reason: StartExited} // rt-64
		default:
			steps[i] = step{reason: StartUnknownState} // rt-66
		}
		if passed && !behind {
			if i == len(list)-1 {
				done = true // rt-61, rt-65
			} else {
				steps[i+1] = step{reason: fresh(c.look(&list[i+1]))}
			}
		}
		behind = true
	}
	if !behind {
		steps[0] = step{reason: fresh(c.look(&list[0]))} // rt-67
	}
	for i := range list { // rt-68
		switch ct := &list[i]; {
		case steps[i].reason != "":
			c.start(Init, ct, c.look(ct), steps[i])
		case steps[i].keep:
			c.resize(Init, ct, c.look(ct).counts)
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

// begun reports whether the regular containers have had their turn in this
// sandbox: one of them has an instance in it, in whatever state (rt-54). An
// instance of a former sandbox proves nothing, as that after a reboot.
func (c *computation) begun() bool {
	for i := range c.Pod.Spec.Containers {
		if c.look(&c.Pod.Spec.Containers[i]).counts != nil {
			return true
		}
	}
	return false
}

// sidecar decides on a restartable init container that has an instance: it is
// kept running whatever the pod's policy says (rt-58, rt-60 … rt-63, rt-66).
// It counts as started when it runs, is to stay, and has passed its startup
// probe; the next one waits for that.
func (c *computation) sidecar(ct *v1.Container, h history) (s step, started bool) {
	switch h.counts.State {
	case runtime.ContainerRunning:
		if f := c.flawOf(ct, &h, h.counts); f.kill != "" {
			return step{
				reason:  f.kill,
				kill:    f.kill,
				message: "Init container " + ct.Name + " " + f.words,
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

// initVerdict returns initFailed if inst, the newest of an init container that
// is not a sidecar, failed and must not run again; initDone if it succeeded;
// else initPending.
func (c *computation) initVerdict(ct *v1.Container, inst *runtime.ContainerStatus) initState {
	switch {
	case succeeded(inst):
		return initDone
	case inst.State == runtime.ContainerCreated:
		return initPending
	case inst.State == runtime.ContainerExited:
		code := inst.ExitCode
		if code == 0 {
			code = killed // for lack of memory, though its exit code hides it
		}
		if c.after(ct, code) == podspec.NoRestart {
			return initFailed
		}
	case podspec.RestartPolicy(c.Pod, ct) == v1.RestartPolicyNever:
		return initFailed // rules are for exit codes, and there is none (rt-66)
	}
	return initPending
}

// succeeded reports whether an init container has done its work. One that was
// killed for lack of memory has not, whatever its exit code (rt-64).
func succeeded(inst *runtime.ContainerStatus) bool {
	return inst.State == runtime.ContainerExited && inst.ExitCode == 0 && inst.Reason != "OOMKilled"
}
