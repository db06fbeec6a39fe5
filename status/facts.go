package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// Facts is the input of [Compute], which does not change it.
type Facts struct {
	// Pod has the spec with the allocated resources and, as far as the source has it, the
	// status: conditions of other writers, and the phase and container statuses that this
	// node reported before a restart. Required.
	Pod *v1.Pod

	// Observed is the state of the pod in the runtime. If nil, it was not inspected, and the
	// container statuses of Previous are kept.
	Observed *runtime.PodStatus

	// Previous is the result of the last Compute for the pod. If zero, Pod.Status is used. A
	// phase, restart count or exit code never regresses from it.
	Previous v1.PodStatus

	// Waiting contains, by container name, why containers that should run do not (rule
	// st-10).
	Waiting map[string]v1.ContainerStateWaiting

	// Termination is the decision of the agent to terminate or fail the pod.
	Termination runtime.Termination

	// HostIPs are the addresses of the node, the primary one first; its family is the
	// node's primary family. If nil, host addresses and the addresses of pods in the host
	// network are not reported.
	HostIPs []string

	// Probes contains the results of probes, by container name. If nil, every probe counts
	// as successful. If not nil, a container with a probe that is missing has no result
	// yet.
	Probes map[string]runtime.ProbeStatus

	// RecursiveReadOnly: the runtime handler of the pod supports recursive read-only mounts,
	// so that IfPossible is reported as Enabled (rule st-14). False if unknown.
	RecursiveReadOnly bool

	// DeviceHealth contains the health of allocated devices, by container name. If nil, none
	// is reported.
	DeviceHealth map[string][]v1.ResourceStatus

	// VolumeHealth contains the adverse conditions of volumes, sorted by name. If empty, none
	// is reported.
	VolumeHealth []v1.PodVolumeHealth

	// Resize is the state of a resize of the pod. Zero means none.
	Resize Resize

	// Unready makes the pod not ready although its containers are. Zero means no such
	// reason.
	Unready Unready

	// MayHaveResources: resource claims of the pod may be prepared. Compute ignores it; a
	// Manager does not deliver a terminal phase while it is true, since the control plane
	// deallocates the claims of terminated pods (rule st-77). The pod must be reported again
	// when it has changed.
	MayHaveResources bool

	// Now is the time of changes.
	Now time.Time
}

// Resize is the state of a resize of a pod.
type Resize struct {
	// Conditions are the PodResizePending and PodResizeInProgress conditions, without
	// times. They replace those of the previous status.
	Conditions []v1.PodCondition

	// PodLevel are the resources that the pod was last given as a whole, if it has pod-level
	// resources. If nil, those of its spec.
	PodLevel *v1.ResourceRequirements
}

// Unready is the reason and message of a Ready condition that is false because the node is about
// to terminate the pod. It is not used if the pod is not ready by itself.
type Unready struct{ Reason, Message string }

// previous returns Previous, or Pod.Status if that is zero.
func (f *Facts) previous() *v1.PodStatus {
	p := &f.Previous
	if p.Phase == "" && len(p.Conditions) == 0 && len(p.ContainerStatuses) == 0 && len(p.InitContainerStatuses) == 0 {
		return &f.Pod.Status
	}
	return p
}

// Compute returns the status of a pod. It is a pure function: equal facts give equal statuses,
// the facts are not changed, and the result shares no mutable memory with them.
//
// Conditions have their transition times, times are truncated to seconds and messages to their
// limits. The result, passed as Previous with otherwise equal facts, gives an equal result.
//
// A terminal phase is returned as soon as it is certain, which may be while containers still run
// (an eviction). It should not be published before they have stopped; a [Manager] withholds it.
func Compute(f Facts) v1.PodStatus {
	pod, prev := f.Pod, f.previous()

	s := v1.PodStatus{
		ObservedGeneration: max(pod.Generation, prev.ObservedGeneration),
		QOSClass:           podspec.QOSClass(pod),
		StartTime:          startTime(&f, prev),

		// Owned by other writers.
		NominatedNodeName:                    pod.Status.NominatedNodeName,
		ResourceClaimStatuses:                pod.Status.ResourceClaimStatuses,
		ExtendedResourceClaimStatus:          pod.Status.ExtendedResourceClaimStatus,
		NodeAllocatableResourceClaimStatuses: pod.Status.NodeAllocatableResourceClaimStatuses,

		VolumeHealth: f.VolumeHealth,
	}
	s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses = containerStatuses(f)

	computed := computePhase(phaseFacts{
		Pod: pod, Init: s.InitContainerStatuses, Containers: s.ContainerStatuses,
		Terminal: f.Termination.Terminal, Initialized: hasInitialized(pod, f.Observed),
		Over: isOver(&f, prev), InitPending: isInitPending(&f, s.InitContainerStatuses), Observed: f.Observed,
	})
	s.Phase, s.Reason, s.Message = settle(computed, &pod.Status, prev, f.Termination)

	if !isRejected(&s) {
		s.AllocatedResources, s.Resources = podResources(&f)
	}
	setIPs(&s, &f, prev)
	truncate(&s, len(pod.Spec.InitContainers)+len(pod.Spec.Containers)+len(pod.Spec.EphemeralContainers))
	s.Conditions = computeConditions(conditionFacts{
		Pod: pod, Status: &s, Previous: prev.Conditions, Observed: f.Observed,
		Resize: f.Resize.Conditions, Disruption: disruption(&f, prev), Unready: f.Unready, Now: f.Now,
	})
	return *s.DeepCopy()
}

// settle returns the phase with its reason and message, given the computed and the previous
// phases. A terminal phase is final, the one in the source before the one of this node; Succeeded
// and Failed do not replace each other.
func settle(computed v1.PodPhase, source, prev *v1.PodStatus, end runtime.Termination) (phase v1.PodPhase, reason, message string) {
	phase = computed
	switch {
	case Terminal(source.Phase):
		phase = source.Phase
		if phase != prev.Phase {
			return phase, source.Reason, source.Message
		}
	case Terminal(prev.Phase):
		phase = prev.Phase
	case end.Failed:
		return v1.PodFailed, end.Reason, end.Message
	}
	if phase == prev.Phase {
		return phase, prev.Reason, prev.Message
	}
	return phase, "", ""
}

// disruption returns the message of the disruption that terminates the pod, or "" if the pod was
// terminal before (rule st-75).
func disruption(f *Facts, prev *v1.PodStatus) string {
	if Terminal(prev.Phase) || Terminal(f.Pod.Status.Phase) {
		return ""
	}
	return f.Termination.Disruption
}

// Terminal reports whether p is Succeeded or Failed.
func Terminal(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }

// startTime returns the time at which this node received the pod; it never changes. If it was
// lost in a restart, it is the creation time of the oldest sandbox: a restart must not extend
// activeDeadlineSeconds.
func startTime(f *Facts, prev *v1.PodStatus) *metav1.Time {
	for _, t := range []*metav1.Time{prev.StartTime, f.Pod.Status.StartTime} {
		if t != nil && !t.IsZero() {
			return new(seconds(t.Time))
		}
	}
	start := f.Now
	if f.Observed != nil {
		for _, sandbox := range f.Observed.Sandboxes {
			if at := sandbox.CreatedAt; !at.IsZero() && at.Before(start) {
				start = at
			}
		}
	}
	return new(seconds(start))
}
