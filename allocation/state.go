package allocation

import (
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Pending is what became of a resize that was not granted.
type Pending int

// The ways to be pending.
const (
	NotPending Pending = iota // granted, or nothing was asked
	Deferred                  // it does not fit now, and is tried again
	Infeasible                // it can't be done here; not tried again as it is
)

// String returns the reason that the condition shows; "" if not pending.
func (p Pending) String() string {
	switch p {
	case Deferred:
		return v1.PodReasonDeferred
	case Infeasible:
		return v1.PodReasonInfeasible
	default:
		return ""
	}
}

// A State is how the resize of one pod stands. The zero value: it has what it
// asks for.
type State struct {
	// Pending tells of the last refusal, PendingMessage why, of which
	// PendingGeneration of the pod, and since when.
	Pending           Pending
	PendingMessage    string
	PendingGeneration int64
	PendingSince      time.Time

	// InProgress: containers do not have yet what they were granted, for
	// ProgressGeneration of the pod. Error is why the last try to give it to
	// them failed, if it did.
	InProgress         bool
	Error              string
	ProgressGeneration int64
}

// Conditions returns the conditions that show s (al-12), PodResizePending
// first; none if there is nothing to show. They have no times: who keeps the
// conditions knows since when they are so.
func (s State) Conditions() []v1.PodCondition {
	var list []v1.PodCondition
	if s.Pending != NotPending {
		list = append(list, v1.PodCondition{
			Type: v1.PodResizePending, Status: v1.ConditionTrue, ObservedGeneration: s.PendingGeneration,
			Reason: s.Pending.String(), Message: s.PendingMessage,
		})
	}
	if s.InProgress {
		c := v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue, ObservedGeneration: s.ProgressGeneration}
		if s.Error != "" {
			c.Reason, c.Message = v1.PodReasonError, s.Error
		}
		list = append(list, c)
	}
	return list
}

// stateOf reads a state from the conditions of a pod: what an earlier agent said
// (sl-20).
func stateOf(conditions []v1.PodCondition) State {
	var s State
	for i := range conditions {
		switch c := &conditions[i]; {
		case c.Status != v1.ConditionTrue:
		case c.Type == v1.PodResizePending:
			s.Pending = Deferred
			if c.Reason == v1.PodReasonInfeasible {
				s.Pending = Infeasible
			}
			s.PendingMessage, s.PendingGeneration, s.PendingSince = c.Message, c.ObservedGeneration, c.LastTransitionTime.Time
		case c.Type == v1.PodResizeInProgress:
			s.InProgress, s.ProgressGeneration = true, c.ObservedGeneration
			if c.Reason == v1.PodReasonError {
				s.Error = c.Message
			}
		}
	}
	return s
}

// An occurrence is something a person would want to read about a resize.
type occurrence struct {
	eventType, reason, message string
}

// tell returns what happened to pod between two states (al-13): started and
// completed with what was granted, deferred and infeasible with what it asks
// for. A refusal that only words its message otherwise, as it may each time that
// it is asked, is nothing new.
func tell(before, after State, desired, granted *v1.Pod) []occurrence {
	var list []occurrence
	if after.Pending != NotPending &&
		(after.Pending != before.Pending || after.PendingGeneration != before.PendingGeneration) {
		list = append(list, occurrence{v1.EventTypeWarning, "Resize" + after.Pending.String(),
			"Pod resize " + after.Pending.String() + summary(desired, after.PendingGeneration, after.PendingMessage)})
	}
	if after.InProgress && (!before.InProgress || before.ProgressGeneration != after.ProgressGeneration) {
		list = append(list, occurrence{v1.EventTypeNormal, "ResizeStarted",
			"Pod resize started" + summary(granted, after.ProgressGeneration, "")})
	}
	if after.InProgress && after.Error != "" && after.Error != before.Error {
		list = append(list, occurrence{v1.EventTypeWarning, "ResizeError",
			"Pod resize error" + summary(granted, after.ProgressGeneration, after.Error)})
	}
	if before.InProgress && !after.InProgress {
		list = append(list, occurrence{v1.EventTypeNormal, "ResizeCompleted",
			"Pod resize completed" + summary(granted, before.ProgressGeneration, "")})
	}
	return list
}

// named is one container in a summary.
type named struct {
	Name      string                  `json:"name"`
	Resources v1.ResourceRequirements `json:"resources"`
}

// summary returns ": " and the resources of pod as JSON, for the message of an
// event.
func summary(pod *v1.Pod, generation int64, problem string) string {
	said := struct {
		Pod            *v1.ResourceRequirements `json:"resources,omitempty"`
		InitContainers []named                  `json:"initContainers,omitempty"`
		Containers     []named                  `json:"containers,omitempty"`
		Generation     int64                    `json:"generation"`
		Error          string                   `json:"error,omitempty"`
	}{Pod: pod.Spec.Resources, Generation: generation, Error: problem}
	for i := range pod.Spec.InitContainers {
		said.InitContainers = append(said.InitContainers, named{pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Resources})
	}
	for i := range pod.Spec.Containers {
		said.Containers = append(said.Containers, named{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Resources})
	}
	text, err := json.Marshal(said)
	if err != nil {
		return "" // cannot be: quantities and strings always have a JSON form
	}
	return ": " + string(text)
}
