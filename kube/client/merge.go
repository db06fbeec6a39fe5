package client

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubeparts/kubeparts/status"
)

// merge returns what the API server is to hold after this node said said, where
// it holds old (section 7.8): said, and of old what others wrote. It changes
// neither.
func merge(old, said *v1.PodStatus, mirror bool, now time.Time) v1.PodStatus {
	s := *said
	// A phase that was terminal once stays, whoever said it: its controller
	// has drawn its conclusions. The copy of a static pod has no controller.
	if status.Terminal(old.Phase) && !status.Terminal(s.Phase) && !mirror {
		s.Phase, s.Reason, s.Message = old.Phase, old.Reason, old.Message
	}
	s.Conditions = conditions(old, said, s.Phase, now)
	s.ResourceClaimStatuses = old.ResourceClaimStatuses // st-76
	s.ExtendedResourceClaimStatus = old.ExtendedResourceClaimStatus
	s.NodeAllocatableResourceClaimStatuses = old.NodeAllocatableResourceClaimStatuses
	return s
}

// conditions returns those of others as they are, and this node's own.
func conditions(old, said *v1.PodStatus, phase v1.PodPhase, now time.Time) []v1.PodCondition {
	var all []v1.PodCondition
	for _, c := range old.Conditions { // st-74
		if !status.Owned(c.Type) && c.Type != v1.DisruptionTarget {
			all = append(all, c)
		}
	}
	// A disruption is told when it has ended the pod, not before (st-75).
	disrupted := status.Condition(old.Conditions, v1.DisruptionTarget)
	if news := status.Condition(said.Conditions, v1.DisruptionTarget); news != nil &&
		status.Terminal(phase) && !status.Terminal(old.Phase) && (disrupted == nil || !sameCondition(*disrupted, *news)) {
		dated := *news
		dated.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		disrupted = &dated
	}
	if disrupted != nil {
		all = append(all, *disrupted)
	}
	for _, c := range said.Conditions {
		if !status.Owned(c.Type) {
			continue
		}
		if was := status.Condition(old.Conditions, c.Type); was != nil && was.Status == c.Status && c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = was.LastTransitionTime
		}
		all = append(all, c)
	}
	if status.Terminal(phase) { // st-78
		reason := "PodCompleted"
		if phase == v1.PodFailed {
			reason = "PodFailed"
		}
		for i := range all {
			c := &all[i]
			if (c.Type == v1.PodReady || c.Type == v1.ContainersReady) && c.Status == v1.ConditionTrue {
				c.Status, c.Reason, c.Message = v1.ConditionFalse, reason, ""
				c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
				if was := status.Condition(old.Conditions, c.Type); was != nil && was.Status == c.Status {
					c.LastTransitionTime = was.LastTransitionTime // told before
				}
			}
		}
	}
	// In the order in which they are there: a patch would carry another one,
	// and nothing else.
	place := func(t v1.PodConditionType) int {
		i := slices.IndexFunc(old.Conditions, func(c v1.PodCondition) bool { return c.Type == t })
		if i < 0 {
			return len(old.Conditions)
		}
		return i
	}
	slices.SortStableFunc(all, func(a, b v1.PodCondition) int { return place(a.Type) - place(b.Type) })
	return all
}

func sameCondition(a, b v1.PodCondition) bool {
	a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
	a.LastProbeTime, b.LastProbeTime = metav1.Time{}, metav1.Time{}
	return a == b
}

// patch returns the strategic merge patch that makes old into next in the pod
// with that UID, and in no other (st-67). It is nil if there is nothing to do.
func patch(uid types.UID, old, next *v1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(v1.Pod{Status: *old})
	if err != nil {
		return nil, fmt.Errorf("the status that is there: %w", err)
	}
	after, err := json.Marshal(v1.Pod{Status: *next})
	if err != nil {
		return nil, fmt.Errorf("the new status: %w", err)
	}
	p, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.Pod{})
	if err != nil {
		return nil, err
	}
	if slices.Equal(p, []byte("{}")) {
		return nil, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(p, &m); err != nil {
		return nil, err
	}
	if m["metadata"], err = json.Marshal(map[string]types.UID{"uid": uid}); err != nil { // the precondition
		return nil, err
	}
	return json.Marshal(m)
}
