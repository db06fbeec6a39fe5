package status

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Held reports whether a terminal phase has to stay unsaid for now (st-77,
// inv-6): something of the pod runs, or may. A controller that reads "Failed"
// starts a replacement, which must not meet its predecessor.
func Held(s *v1.PodStatus, observed *runtime.PodStatus) bool {
	if !Terminal(s.Phase) {
		return false
	}
	if observed == nil {
		return slices.ContainsFunc(s.ContainerStatuses, running) || slices.ContainsFunc(s.InitContainerStatuses, running)
	}
	return observed.Running() || slices.ContainsFunc(observed.Containers, func(c runtime.ContainerStatus) bool {
		return c.State == runtime.ContainerUnknown
	})
}

func running(s v1.ContainerStatus) bool { return s.State.Running != nil }

// Said is the phase of a pod that was said last, and why.
type Said struct {
	Phase           v1.PodPhase
	Reason, Message string
}

func said(s *v1.PodStatus) Said { return Said{s.Phase, s.Reason, s.Message} }

// Hold returns s as it may be said while its terminal phase is held back: with
// the phase, reason and message that was said last. The disruption that ends it is
// kept back too: it goes with the phase (st-75). Where
// nothing was said yet, the phase is Running or Pending. It does not change
// what s points to.
func Hold(s v1.PodStatus, said Said, source *v1.PodStatus) v1.PodStatus {
	s.Phase, s.Reason, s.Message = said.Phase, said.Reason, said.Message
	if s.Phase == "" {
		s.Phase = v1.PodPending
		if slices.ContainsFunc(s.ContainerStatuses, running) {
			s.Phase = v1.PodRunning
		}
	}
	if i := slices.IndexFunc(s.Conditions, func(c v1.PodCondition) bool { return disruptedHere(&c) }); i >= 0 {
		s.Conditions = slices.Clone(s.Conditions)
		if theirs := Condition(source.Conditions, v1.DisruptionTarget); theirs != nil {
			s.Conditions[i] = *theirs
		} else {
			s.Conditions = slices.Delete(s.Conditions, i, i+1)
		}
	}
	return s
}

// released returns s as it is said when its phase is held back no more: the
// disruption that went with the phase begins now (st-75). It does not change what
// s points to.
func released(s v1.PodStatus, source *v1.PodStatus, now time.Time) v1.PodStatus {
	if Condition(source.Conditions, v1.DisruptionTarget) != nil {
		return s
	}
	for i := range s.Conditions {
		if disruptedHere(&s.Conditions[i]) {
			s.Conditions = slices.Clone(s.Conditions)
			s.Conditions[i].LastTransitionTime = seconds(now)
			break
		}
	}
	return s
}
