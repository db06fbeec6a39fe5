package status

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// mustWithhold reports whether the terminal phase of s must not be published yet, because a
// container of the pod may run: a controller that reads "Failed" starts a replacement, which
// must not run at the same time (rule st-77).
func mustWithhold(s *v1.PodStatus, observed *runtime.PodStatus) bool {
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

// publishedPhase is the last delivered phase of a pod.
type publishedPhase struct {
	Phase           v1.PodPhase
	Reason, Message string
}

func phaseOf(s *v1.PodStatus) publishedPhase { return publishedPhase{s.Phase, s.Reason, s.Message} }

// withholdPhase returns s with the last delivered phase, reason and message instead of its
// terminal phase; without one the phase is Running or Pending. A disruption by this node is
// withheld with the phase (rule st-75). Memory that s refers to is not changed.
func withholdPhase(s v1.PodStatus, said publishedPhase, source *v1.PodStatus) v1.PodStatus {
	s.Phase, s.Reason, s.Message = said.Phase, said.Reason, said.Message
	if s.Phase == "" {
		s.Phase = v1.PodPending
		if slices.ContainsFunc(s.ContainerStatuses, running) {
			s.Phase = v1.PodRunning
		}
	}
	if i := slices.IndexFunc(s.Conditions, func(c v1.PodCondition) bool { return ownDisruption(&c) }); i >= 0 {
		s.Conditions = slices.Clone(s.Conditions)
		if theirs := Condition(source.Conditions, v1.DisruptionTarget); theirs != nil {
			s.Conditions[i] = *theirs
		} else {
			s.Conditions = slices.Delete(s.Conditions, i, i+1)
		}
	}
	return s
}

// released returns s as it is published when its terminal phase is no longer withheld: a
// disruption by this node begins now (rule st-75). Memory that s refers to is not changed.
func released(s v1.PodStatus, source *v1.PodStatus, now time.Time) v1.PodStatus {
	if Condition(source.Conditions, v1.DisruptionTarget) != nil {
		return s
	}
	for i := range s.Conditions {
		if ownDisruption(&s.Conditions[i]) {
			s.Conditions = slices.Clone(s.Conditions)
			s.Conditions[i].LastTransitionTime = seconds(now)
			break
		}
	}
	return s
}
