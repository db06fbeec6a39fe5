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

	// InitPending: init containers have to run in the newest sandbox, whatever they did in
	// former ones; see podspec.Outcome.
	InitPending bool

	// Over: no container will be started again, also not one that has never run; see
	// isOver.
	Over bool

	// Observed has the exits of the instances; nil if the pod was not inspected.
	Observed *runtime.PodStatus
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
	case f.Over && t.running == 0:
		if t.succeeded == len(f.Pod.Spec.Containers) {
			return v1.PodSucceeded
		}
		return v1.PodFailed // a container failed, or will never run
	case t.initPending > 0 || f.InitPending || t.sidecarPending > 0 && !f.Initialized:
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
			t.init(&f, c, s)
		}
	}
	for i := range f.Pod.Spec.Containers {
		c := &f.Pod.Spec.Containers[i]
		t.regular(&f, c, find(f.Containers, c.Name))
	}
	return t
}

// init counts an init container that is not a sidecar (rule st-22).
func (t *tally) init(f *phaseFacts, c *v1.Container, s *v1.ContainerStatus) {
	end := ended(s)
	switch {
	case end == nil:
		t.initPending++
	case !succeeded(f.Pod, f.Observed, c, end) && !removedForRestart(s) && !restartable(f.Pod, f.Observed, c, end):
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
func (t *tally) regular(f *phaseFacts, c *v1.Container, s *v1.ContainerStatus) {
	switch end := ended(s); {
	case s == nil:
		t.unknown++
	case s.State.Running != nil:
		t.running++
	case end != nil:
		t.stopped++
		if s.State.Terminated != nil && succeeded(f.Pod, f.Observed, c, end) {
			t.succeeded++
		}
		if !removedForRestart(s) && !restartable(f.Pod, f.Observed, c, end) && !waitsToStart(f.Observed, s, end) {
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

// exitOf returns the exit of the instance whose end is in a container status, as the runtime
// reports it now, because plans depend on that; else as it was reported.
func exitOf(observed *runtime.PodStatus, end *v1.ContainerStateTerminated) podspec.Exit {
	if observed != nil && end.ContainerID != "" {
		for i := range observed.Containers {
			if inst := &observed.Containers[i]; inst.ID == end.ContainerID && inst.State == runtime.ContainerExited {
				return podspec.ExitOf(inst)
			}
		}
	}
	return podspec.TerminatedExit(end)
}

// succeeded reports whether a container with this exit has succeeded.
func succeeded(pod *v1.Pod, observed *runtime.PodStatus, c *v1.Container, end *v1.ContainerStateTerminated) bool {
	return podspec.Succeeded(pod, c, exitOf(observed, end))
}

// restartable reports whether a container with this exit is restarted according to its restart policies
// and rules. A succeeded init container is not, whatever the policy.
func restartable(pod *v1.Pod, observed *runtime.PodStatus, c *v1.Container, end *v1.ContainerStateTerminated) bool {
	return end.Reason == restartingAll || podspec.RestartsAll(c, end.ExitCode) ||
		podspec.ActionAfterExit(pod, c, exitOf(observed, end)) != podspec.NoRestart
}

// waitsToStart reports whether a container that waits after an exit will be started whatever that
// exit is: its newest instance was created and not started, or its postStart hook runs, or the runtime
// has no instance of it any more and it was reported as waiting for its restart, rather than as lost.
func waitsToStart(observed *runtime.PodStatus, s *v1.ContainerStatus, end *v1.ContainerStateTerminated) bool {
	if observed == nil || s.State.Waiting == nil {
		return false
	}
	if newest := observed.Container(s.Name); newest != nil {
		return newest.State == runtime.ContainerCreated || newest.Starting
	}
	return end.Reason != reasonUnknown
}

// isInitPending reports whether regular containers wait for init containers. While all containers are
// removed for a restart, the pod stays Running (rule rt-142).
func isInitPending(f *Facts, init []v1.ContainerStatus) bool {
	removed := 0
	for i := range init {
		if removedForRestart(&init[i]) {
			removed++
		}
	}
	if removed == len(init) {
		return false
	}
	o := podspec.Outcome{Pod: f.Pod}
	return f.Observed != nil && !f.Termination.Terminal && o.InitPending(f.Observed)
}

// isOver reports whether no container of the pod will be started again, as plans decide it: also
// one that has never run does not, if the sandbox of a pod with the restart policy Never has ended
// (rule rt-41). It is false if the pod was not inspected or is being deleted.
func isOver(f *Facts, prev *v1.PodStatus) bool {
	if f.Observed == nil || f.Pod.DeletionTimestamp != nil || restartAllTriggered(f.Pod, f.Observed) {
		return false
	}
	o := podspec.Outcome{Pod: f.Pod}
	for i := range prev.ContainerStatuses {
		if s := &prev.ContainerStatuses[i]; s.State.Terminated != nil && f.Observed.Container(s.Name) == nil {
			if o.Terminated == nil {
				o.Terminated = map[string]int32{}
			}
			o.Terminated[s.Name] = s.State.Terminated.ExitCode
		}
	}
	return o.Over(f.Observed)
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
