package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Facts is all that a pod's status is made of. Nothing in it is changed.
type Facts struct {
	// Pod is what the source wants, its resources those that it was granted
	// if somebody grants them (al-1), with what the source knows of its status:
	// conditions of others, and the phase and container states this node said
	// in an earlier life. Required.
	Pod *v1.Pod

	// Observed is what the runtime shows. Nil means that nobody looked, not
	// that there is nothing: what was said of the containers then stands.
	Observed *runtime.PodStatus

	// Previous is what was last said of the pod, the result of the last
	// Compute. Zero: nothing by this agent; Pod.Status then takes its place.
	// What may not go back (phase, restart counts, exit codes) is held
	// against it.
	Previous v1.PodStatus

	// Starts tells, by container name, why containers that should run do not
	// (st-10).
	Waiting map[string]runtime.Waiting

	// Ending is the agent's own word on the pod.
	Termination runtime.Termination

	// HostIPs of the node, the primary one first. The family of the first is
	// the node's primary family. Nil leaves out the host's addresses, and the
	// addresses of host network pods.
	HostIPs []string

	// Probes tells, by container name, what the probes said last. Nil: no
	// prober is wired, and every probe counts as passed. Not nil: a container
	// with a probe that is not in here has no result yet.
	Probes map[string]Probed

	// RecursiveReadOnly: the pod's runtime handler can mount recursively read-only,
	// so that IfPossible means Enabled (st-14). False: not, or it is not known.
	RecursiveReadOnly bool

	// Health tells, by container name, how the devices are that it was given
	// (st-34). Nil: nobody watches over devices.
	DeviceHealth map[string][]v1.ResourceStatus

	// Resize tells how a resize of the pod stands. Zero: there is none.
	Resize Resize

	// Unready is why the pod is to get no traffic although its containers are
	// ready. Zero: there is no such reason.
	Unready Unready

	// Now dates what changed.
	Now time.Time
}

// Resize is what whoever grants resources says of a pod (al-1, al-12).
type Resize struct {
	// Conditions are PodResizePending and PodResizeInProgress, as far as they
	// are to be shown, without times. What was said of them before does not
	// count.
	Conditions []v1.PodCondition

	// PodLevel is what the pod as a whole was last given, if it has pod-level
	// resources. Nil: what its spec says.
	PodLevel *v1.ResourceRequirements
}

// Unready is why the node has a pod not Ready: it is about to end it (F-63). The
// condition says so with this reason and message, unless the pod lacks something
// itself.
type Unready struct{ Reason, Message string }

// Probed is what the probes of one container said last.
type Probed struct {
	Startup, Readiness ProbeResult
}

// A ProbeResult is what one probe said last. The zero value: nothing yet.
type ProbeResult = runtime.ProbeResult

// The results of a probe.
const (
	ProbeUnknown = runtime.ProbeUnknown
	ProbeSuccess = runtime.ProbeSuccess
	ProbeFailure = runtime.ProbeFailure
)

// previous is what was said before: by this agent, else what the source says.
func (f *Facts) previous() *v1.PodStatus {
	p := &f.Previous
	if p.Phase == "" && len(p.Conditions) == 0 && len(p.ContainerStatuses) == 0 && len(p.InitContainerStatuses) == 0 {
		return &f.Pod.Status
	}
	return p
}

// Compute returns the status of a pod from facts. It is a pure function: equal
// facts give equal statuses, the facts are not changed, and the result shares
// no memory with them that anyone may change.
//
// The result is finished: conditions have their transition times, timestamps
// are cut to seconds, messages to their limits (st-51 … st-53). Fed back as
// Previous with nothing else changed, it comes out the same.
//
// A terminal phase is computed as soon as it is certain, which may be while
// containers still run (an eviction). [Held] says whether it has to stay
// unsaid; a [Manager] keeps to it.
func Compute(f Facts) v1.PodStatus {
	pod, prev := f.Pod, f.previous()

	s := v1.PodStatus{
		ObservedGeneration: max(pod.Generation, prev.ObservedGeneration), // st-43
		QOSClass:           QOSClass(pod),                                // st-46
		StartTime:          startTime(&f, prev),                          // st-52

		// Of others, and theirs to change (st-76).
		NominatedNodeName:                    pod.Status.NominatedNodeName,
		ResourceClaimStatuses:                pod.Status.ResourceClaimStatuses,
		ExtendedResourceClaimStatus:          pod.Status.ExtendedResourceClaimStatus,
		NodeAllocatableResourceClaimStatuses: pod.Status.NodeAllocatableResourceClaimStatuses,
	}
	s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses = ContainerStatuses(f)
	s.AllocatedResources, s.Resources = podResources(&f)

	computed := Phase(PhaseFacts{
		Pod: pod, Init: s.InitContainerStatuses, Containers: s.ContainerStatuses,
		Terminal: f.Termination.Terminal, Initialized: HasInitialized(pod, f.Observed),
	})
	s.Phase, s.Reason, s.Message = settle(computed, &pod.Status, prev, f.Termination)

	setIPs(&s, &f, prev)
	truncate(&s, len(pod.Spec.InitContainers)+len(pod.Spec.Containers)+len(pod.Spec.EphemeralContainers))
	s.Conditions = Conditions(ConditionFacts{
		Pod: pod, Status: &s, Previous: prev.Conditions, Observed: f.Observed,
		Resize: f.Resize.Conditions, Disruption: disruption(&f, prev), Unready: f.Unready, Now: f.Now,
	})
	return *s.DeepCopy()
}

// settle holds a computed phase against what was said before (st-30 … st-33),
// and returns it with its reason and message. A terminal phase is for ever,
// that of the source before that of this agent; also Succeeded and Failed do
// not replace each other (inv-7).
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

// disruption returns why the node ends the pod, if that is why it has failed: of
// one that had ended before nothing is disrupted any more (st-75).
func disruption(f *Facts, prev *v1.PodStatus) string {
	if Terminal(prev.Phase) || Terminal(f.Pod.Status.Phase) {
		return ""
	}
	return f.Termination.Disruption
}

// Terminal reports whether a pod in this phase has ended.
func Terminal(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }

// startTime is when this node first took note of the pod; it never changes. Of
// a pod that an earlier agent took note of, and nobody wrote that down, its
// oldest sandbox tells: a deadline counts from there, or each restart of the
// agent would put it off, and run anew what was past it.
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
