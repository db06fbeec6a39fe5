package allocation

import (
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A ResizeState is the state of a pod's resize. The zero value means that the requested resources are
// allocated and applied.
type ResizeState struct {
	// PendingReason is the reason why the resize is pending: v1.PodReasonDeferred if it does
	// not fit now and is retried, v1.PodReasonInfeasible if it is impossible on this node and
	// not retried until the pod requests other resources. Empty if no resize is pending.
	//
	// PendingMessage and PendingGeneration are the message and the generation of the pod of
	// the last rejection, and PendingSince the time of the first one.
	PendingReason     string
	PendingMessage    string
	PendingGeneration int64
	PendingSince      time.Time

	// InProgress is true until the allocation for InProgressGeneration of the pod has been
	// applied. Error is the error of the last attempt, empty if there is none.
	InProgress           bool
	Error                string
	InProgressGeneration int64
}

// Conditions returns the pod conditions of s, PodResizePending first. They have no transition
// times, which the status manager sets.
func (s ResizeState) Conditions() []v1.PodCondition {
	var list []v1.PodCondition
	if s.PendingReason != "" {
		list = append(list, v1.PodCondition{
			Type: v1.PodResizePending, Status: v1.ConditionTrue, ObservedGeneration: s.PendingGeneration,
			Reason: s.PendingReason, Message: s.PendingMessage,
		})
	}
	if s.InProgress {
		c := v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue, ObservedGeneration: s.InProgressGeneration}
		if s.Error != "" {
			c.Reason, c.Message = v1.PodReasonError, s.Error
		}
		list = append(list, c)
	}
	return list
}

// stateOf returns the state from the conditions that an earlier agent set.
func stateOf(conditions []v1.PodCondition) ResizeState {
	var s ResizeState
	for i := range conditions {
		switch c := &conditions[i]; {
		case c.Status != v1.ConditionTrue:
		case c.Type == v1.PodResizePending:
			s.PendingReason = v1.PodReasonDeferred
			if c.Reason == v1.PodReasonInfeasible {
				s.PendingReason = v1.PodReasonInfeasible
			}
			s.PendingMessage, s.PendingGeneration, s.PendingSince = c.Message, c.ObservedGeneration, c.LastTransitionTime.Time
		case c.Type == v1.PodResizeInProgress:
			s.InProgress, s.InProgressGeneration = true, c.ObservedGeneration
			if c.Reason == v1.PodReasonError {
				s.Error = c.Message
			}
		}
	}
	return s
}

// A resizeEvent is an event about a resize.
type resizeEvent struct {
	eventType, reason, message string
}

// eventsOf returns the events between two states: started and completed with the allocated
// resources, deferred and infeasible with the desired ones. A different message alone is no
// event.
func eventsOf(before, after ResizeState, desired, allocated *v1.Pod) []resizeEvent {
	var list []resizeEvent
	if after.PendingReason != "" &&
		(after.PendingReason != before.PendingReason || after.PendingGeneration != before.PendingGeneration) {
		list = append(list, resizeEvent{v1.EventTypeWarning, "Resize" + after.PendingReason,
			"Pod resize " + after.PendingReason + summary(desired, after.PendingGeneration, after.PendingMessage)})
	}
	if after.InProgress && (!before.InProgress || before.InProgressGeneration != after.InProgressGeneration) {
		list = append(list, resizeEvent{v1.EventTypeNormal, "ResizeStarted",
			"Pod resize started" + summary(allocated, after.InProgressGeneration, "")})
	}
	if after.InProgress && after.Error != "" && after.Error != before.Error {
		list = append(list, resizeEvent{v1.EventTypeWarning, "ResizeError",
			"Pod resize error" + summary(allocated, after.InProgressGeneration, after.Error)})
	}
	if before.InProgress && !after.InProgress {
		list = append(list, resizeEvent{v1.EventTypeNormal, "ResizeCompleted",
			"Pod resize completed" + summary(allocated, before.InProgressGeneration, "")})
	}
	return list
}

// A containerResources is a container in a summary.
type containerResources struct {
	Name      string                  `json:"name"`
	Resources v1.ResourceRequirements `json:"resources"`
}

// summary returns ": " and the resources of pod as JSON, for the message of an
// event.
func summary(pod *v1.Pod, generation int64, problem string) string {
	s := struct {
		Pod            *v1.ResourceRequirements `json:"resources,omitempty"`
		InitContainers []containerResources     `json:"initContainers,omitempty"`
		Containers     []containerResources     `json:"containers,omitempty"`
		Generation     int64                    `json:"generation"`
		Error          string                   `json:"error,omitempty"`
	}{Pod: pod.Spec.Resources, Generation: generation, Error: problem}
	for i := range pod.Spec.InitContainers {
		s.InitContainers = append(s.InitContainers, containerResources{pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Resources})
	}
	for i := range pod.Spec.Containers {
		s.Containers = append(s.Containers, containerResources{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Resources})
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "" // unreachable: quantities and strings can be marshaled
	}
	return ": " + string(text)
}
