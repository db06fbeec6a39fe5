package status

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// phaseFacts is the input of computePhase.
type phaseFacts struct {
	Pod *v1.Pod

	// Init and Containers are the statuses of init and regular containers.
	// Ephemeral containers do not affect the phase.
	Init, Containers []v1.ContainerStatus

	// Terminal: no container will be started again.
	Terminal bool

	// Initialized: a regular container was created in the newest ready sandbox; see
	// hasInitialized.
	Initialized bool
}

// tally counts the containers of a pod by state. A container is in at most one of running, waiting,
// unknown and stopped; completed init containers are in none.
type tally struct {
	running, waiting, unknown int

	// succeeded and final (will not restart) are included in stopped.
	stopped, succeeded, final int

	initPending    int // init containers other than sidecars that have not terminated
	sidecarPending int // sidecars not yet started
	initFailed     int // init containers that failed and will not restart
}

// computePhase returns the phase of a pod from its spec and the statuses of its containers (rules st-22
// to st-29). The previous phase is not considered; settle keeps a terminal one.
func computePhase(f phaseFacts) v1.PodPhase {
	t := count(f)
	// The first case that applies determines the phase (rule st-25).
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
	case f.Terminal && !runtime.IsStatic(f.Pod):
		if t.stopped == t.succeeded {
			return v1.PodSucceeded
		}
		return v1.PodFailed
	case t.stopped > t.final: // one of them will be restarted
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	default:
		return v1.PodFailed
	}
}

// count tallies the containers.
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

// init counts an init container that is not a sidecar (rule st-22).
func (t *tally) init(pod *v1.Pod, c *v1.Container, s *v1.ContainerStatus) {
	end := ended(s)
	switch {
	case end == nil:
		t.initPending++
	case end.ExitCode != 0 && !removedForRestart(s) && !restartable(pod, c, true, end):
		t.initFailed++
	}
}

// sidecar counts a restartable init container (rule st-23). A terminated sidecar keeps the pod neither
// pending nor running.
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

// regular counts a regular container (rule st-24). One that waits for a restart counts as stopped, but
// not as succeeded.
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

// ended returns the last exit of a container that does not run; nil if it runs or never ran.
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

// restartable reports whether a container with this exit is restarted according to its restart policies
// and rules. A succeeded init container is not, whatever the policy.
func restartable(pod *v1.Pod, c *v1.Container, init bool, end *v1.ContainerStateTerminated) bool {
	if end.Reason == restartingAll || podspec.RestartsAll(c, end.ExitCode) {
		return true
	}
	if init && end.ExitCode == 0 && !podspec.IsSidecar(c) {
		return false
	}
	return podspec.ActionAfterExit(pod, c, end.ExitCode) != podspec.NoRestart
}

// hasInitialized reports whether the init containers of the pod have completed: a regular container has
// an instance in the newest ready sandbox (rule st-21). A restart of a sidecar does not make the pod
// Pending then.
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
