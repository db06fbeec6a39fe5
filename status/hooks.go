package status

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
)

// Hooks observe a [Manager]. Any may be nil. They are called without locks, on the goroutine
// of Report, Finish or Run that caused them, and must not block.
type Hooks struct {
	// Changed is called when a computed status differs from the previous one. For one pod
	// the calls are in the order of its reports.
	Changed func(ChangedInfo)

	// Terminated is called when an exit of a container is reported for the first time.
	Terminated func(TerminatedInfo)

	// IllegalRestart is called when the runtime has restarted a container that had
	// terminated and may not restart; its exit stays in the status. err names the container
	// and its exit code. It is called once, not with each report that observes it.
	IllegalRestart func(pod *v1.Pod, err error)

	// Delivered is called when a call of the sink has returned.
	Delivered func(DeliveredInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Changed, o.Changed)
		compose.Add(&h.Terminated, o.Terminated)
		compose.Add2(&h.IllegalRestart, o.IllegalRestart)
		compose.Add(&h.Delivered, o.Delivered)
	}
	return h
}

// ChangedInfo is a change of a status; Describe(&Old, &New) formats it. Neither status may
// be changed.
type ChangedInfo struct {
	Pod      *v1.Pod
	Old, New v1.PodStatus
}

// TerminatedInfo is an exit of a container.
type TerminatedInfo struct {
	Pod       *v1.Pod
	Container string
	// Type is init_container, container or ephemeral_container, as in the kubelet's metric
	// kubelet_terminated_containers_total.
	Type string
	// Exit must not be changed.
	Exit *v1.ContainerStateTerminated
}

// DeliveredInfo is a call of the sink.
type DeliveredInfo struct {
	Pod *v1.Pod

	// Deleted: the call was DeletePod; else UpdatePodStatus.
	Deleted bool

	// Again: the call repeats a delivered status because another writer has changed it.
	Correction bool

	// Err is the error of the sink. If it is not nil, the call is repeated.
	Err error

	// Latency is the time since the oldest change that no earlier call contained
	// (kubelet_pod_status_sync_duration_seconds). Zero for deletions and if Again.
	Latency time.Duration
}

// changed calls the hooks for a change from old to new.
func (h *Hooks) changed(pod *v1.Pod, old, new *v1.PodStatus) {
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

// newExits returns the exits in new that old does not contain, oldest first. old may be nil.
func newExits(old, new *v1.ContainerStatus) []*v1.ContainerStateTerminated {
	var exits []*v1.ContainerStateTerminated
	for _, t := range []*v1.ContainerStateTerminated{new.LastTerminationState.Terminated, new.State.Terminated} {
		if t != nil && !shows(old, t) {
			exits = append(exits, t)
		}
	}
	return exits
}

// shows reports whether s contains that exit. An exit without a container ID was not observed;
// s contains it if it contains any exit.
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
