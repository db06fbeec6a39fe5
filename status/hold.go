package status

import (
	"slices"

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
// the phase, reason and message that was said last. A disruption that the source
// does not know of is kept back too: it goes with the phase (st-75). Where
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
	if Condition(source.Conditions, v1.DisruptionTarget) == nil {
		s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c v1.PodCondition) bool {
			return c.Type == v1.DisruptionTarget
		})
	}
	return s
}
