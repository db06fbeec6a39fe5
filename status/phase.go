package status

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// phaseFacts is what a phase is decided by.
type phaseFacts struct {
	Pod *v1.Pod

	// Init and Containers are the statuses of init and regular containers.
	// Ephemeral containers have no say.
	Init, Containers []v1.ContainerStatus

	// Terminal: no container will be started again.
	Terminal bool

	// Initialized: the regular containers have had their turn in the sandbox
	// that counts; see [HasInitialized].
	Initialized bool
}

// tally counts the containers of a pod by what they do. A container is in one
// of running, waiting, unknown and stopped at most; init containers that ran
// to their end are in none.
type tally struct {
	running, waiting, unknown int

	// Of stopped, how many with success, and how many for good.
	stopped, succeeded, final int

	initPending    int // non-restartable init containers that have not ended
	sidecarPending int // sidecars not yet started
	initFailed     int // init containers that failed and stay so
}

// Phase returns the phase of a pod by its spec and the statuses of its
// containers (st-22 … st-29). It does not look at the pod's former phase:
// [Compute] sees to it that a terminal one stays.
func computePhase(f phaseFacts) v1.PodPhase {
	t := count(f)
	// The table of st-25; the first row that holds decides.
	switch {
	case t.initFailed > 0:
		return v1.PodFailed
	case t.initPending > 0 || t.sidecarPending > 0 && !f.Initialized:
		return v1.PodPending
	case t.waiting > 0:
		return v1.PodPending
	case t.running > 0 && t.unknown == 0:
		return v1.PodRunning
	case t.running > 0 || t.stopped == 0 || t.unknown > 0:
		return v1.PodPending
	case f.Terminal && !runtime.IsStatic(f.Pod): // st-28
		if t.stopped == t.succeeded {
			return v1.PodSucceeded
		}
		return v1.PodFailed
	case t.stopped > t.final: // one of them is about to start again
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	default:
		return v1.PodFailed
	}
}

// count tallies the containers (st-22 … st-24).
func count(f phaseFacts) tally {
	var t tally
	for i := range f.Pod.Spec.InitContainers {
		c := &f.Pod.Spec.InitContainers[i]
		if s := find(f.Init, c.Name); podspec.IsSidecar(c) {
			t.sidecar(s)
		} else {
			t.init(f.Pod, c, s)
		}
	}
	for i := range f.Pod.Spec.Containers {
		c := &f.Pod.Spec.Containers[i]
		t.regular(f.Pod, c, find(f.Containers, c.Name))
	}
	return t
}

// init counts an init container that is to run to its end (st-22).
func (t *tally) init(pod *v1.Pod, c *v1.Container, s *v1.ContainerStatus) {
	end := ended(s)
	switch {
	case end == nil:
		t.initPending++
	case end.ExitCode != 0 && !removedForRestart(s) && !restartable(pod, c, true, end):
		t.initFailed++
	}
}

// sidecar counts a restartable init container (st-23). Once it has run it
// keeps the pod neither pending nor alive.
func (t *tally) sidecar(s *v1.ContainerStatus) {
	switch {
	case s == nil:
		t.unknown++
	case s.State.Running != nil:
		if s.Started == nil || !*s.Started {
			t.sidecarPending++
		}
		t.running++
	case ended(s) != nil:
	case s.State.Waiting != nil:
		t.sidecarPending++
		t.waiting++
	default:
		t.sidecarPending++
		t.unknown++
	}
}

// regular counts a regular container (st-24). One that waits for its next
// start after an exit counts as stopped, but never as succeeded.
func (t *tally) regular(pod *v1.Pod, c *v1.Container, s *v1.ContainerStatus) {
	switch end := ended(s); {
	case s == nil:
		t.unknown++
	case s.State.Running != nil:
		t.running++
	case end != nil:
		t.stopped++
		if s.State.Terminated != nil && end.ExitCode == 0 {
			t.succeeded++
		}
		if !removedForRestart(s) && !restartable(pod, c, false, end) {
			t.final++
		}
	case s.State.Waiting != nil:
		t.waiting++
	default:
		t.unknown++
	}
}

// ended returns the exit that says how a container that does not run now has
// ended; nil if it runs or never ran.
func ended(s *v1.ContainerStatus) *v1.ContainerStateTerminated {
	switch {
	case s == nil:
		return nil
	case s.State.Terminated != nil:
		return s.State.Terminated
	case s.State.Waiting != nil:
		return s.LastTerminationState.Terminated
	default:
		return nil
	}
}

// restartable reports whether a container that ended so runs again, as far as
// its policies go (rt-33 … rt-35). An init container that succeeded has done
// its work, whatever the policy says.
func restartable(pod *v1.Pod, c *v1.Container, init bool, end *v1.ContainerStateTerminated) bool {
	if end.Reason == restartingAll || podspec.RestartsAll(c, end.ExitCode) {
		return true
	}
	if init && end.ExitCode == 0 && !podspec.IsSidecar(c) {
		return false
	}
	return podspec.ActionAfterExit(pod, c, end.ExitCode) != podspec.NoRestart
}

// HasInitialized reports whether the init containers of the pod are done in
// the sandbox that counts: a regular container has an instance in the newest
// ready one (rt-9, st-21). Sidecars then start over without taking the pod
// back to Pending.
func hasInitialized(pod *v1.Pod, observed *runtime.PodStatus) bool {
	if observed == nil {
		return false
	}
	for i := range observed.Sandboxes {
		if sb := &observed.Sandboxes[i]; sb.State == runtime.SandboxReady {
			return hasRegular(pod, observed, sb.ID)
		}
	}
	return false
}

// hasRegular reports whether a regular container of pod has an instance in the
// sandbox.
func hasRegular(pod *v1.Pod, observed *runtime.PodStatus, sandboxID string) bool {
	for i := range observed.Containers {
		if observed.Containers[i].SandboxID != sandboxID {
			continue
		}
		for j := range pod.Spec.Containers {
			if pod.Spec.Containers[j].Name == observed.Containers[i].Name {
				return true
			}
		}
	}
	return false
}

// find returns the status of the named container, or nil. It points into list.
func find(list []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
