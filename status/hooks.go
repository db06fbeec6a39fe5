package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Hooks are called as things happen, for metrics and for people. Nil ones are
// left out. They are called without locks held, on the goroutine on which the
// thing happened, and should not block.
type Hooks struct {
	// Changed: the status of a pod says something new. For one pod the calls
	// come in the order of its reports.
	Changed func(ChangedInfo)

	// Terminated: an exit of a container was seen for the first time (st-58).
	Terminated func(TerminatedInfo)

	// Refused: the runtime shows that a container runs again which had exited for
	// good, and this is not said (st-50). It is called when that begins, not with
	// each report: an event for the operator.
	Refused func(RefusedInfo)

	// Delivered: a call of the sink returned.
	Delivered func(DeliveredInfo)
}

// ChangedInfo tells of a new status. Describe(&Old, &New) puts it in words.
// Neither status may be changed.
type ChangedInfo struct {
	Pod      *v1.Pod
	Old, New v1.PodStatus
}

// TerminatedInfo tells of an exit.
type TerminatedInfo struct {
	Pod       *v1.Pod
	Container string
	// Type is init_container, container or ephemeral_container, as in the
	// kubelet's metric.
	Type string
	// Exit may not be changed.
	Exit *v1.ContainerStateTerminated
}

// RefusedInfo tells what was not said.
type RefusedInfo struct {
	Pod *v1.Pod
	// Err names the container and its exit code.
	Err error
}

// DeliveredInfo tells of a call of the sink.
type DeliveredInfo struct {
	Pod *v1.Pod

	// Deleted: the call was DeletePod; else UpdatePodStatus.
	Deleted bool

	// Again: the call says what was said before, because somebody else wrote
	// over it (st-71).
	Again bool

	// Err is what the sink returned; it is tried again.
	Err error

	// Latency since the oldest change that this call was the first to carry.
	// Zero for deletions, and for what is said again.
	// (kubelet_pod_status_sync_duration_seconds, st-69.)
	Latency time.Duration
}

// tell calls the hooks for a change from old to new.
func (h *Hooks) tell(pod *v1.Pod, old, new *v1.PodStatus) {
	if h.Changed != nil {
		h.Changed(ChangedInfo{Pod: pod, Old: *old, New: *new})
	}
	if h.Terminated == nil {
		return
	}
	for _, part := range []struct {
		kind     string
		old, new []v1.ContainerStatus
	}{
		{"init_container", old.InitContainerStatuses, new.InitContainerStatuses},
		{"container", old.ContainerStatuses, new.ContainerStatuses},
		{"ephemeral_container", old.EphemeralContainerStatuses, new.EphemeralContainerStatuses},
	} {
		for i := range part.new {
			for _, exit := range newExits(find(part.old, part.new[i].Name), &part.new[i]) {
				h.Terminated(TerminatedInfo{Pod: pod, Container: part.new[i].Name, Type: part.kind, Exit: exit})
			}
		}
	}
}

// newExits returns the exits in new that old (nil: nothing) does not show,
// oldest first.
func newExits(old, new *v1.ContainerStatus) []*v1.ContainerStateTerminated {
	var exits []*v1.ContainerStateTerminated
	for _, t := range []*v1.ContainerStateTerminated{new.LastTerminationState.Terminated, new.State.Terminated} {
		if t != nil && !shows(old, t) {
			exits = append(exits, t)
		}
	}
	return exits
}

// shows reports whether s has the exit of that instance already. An exit
// without an instance is one nobody saw; s shows it if it has any exit.
func shows(s *v1.ContainerStatus, exit *v1.ContainerStateTerminated) bool {
	if s == nil {
		return false
	}
	for _, t := range []*v1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if t != nil && (t.ContainerID == exit.ContainerID || exit.ContainerID == "") {
			return true
		}
	}
	return false
}
