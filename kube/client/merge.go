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
// it holds old (section 7.8): status.Merge, with the times and in the order that
// make a patch of it as small as it can be. It changes neither.
func merge(old, said *v1.PodStatus, mirror bool, now time.Time) v1.PodStatus {
	theirs := *old
	if mirror {
		// A static pod may run again, and its copy has no controller that has
		// drawn its conclusions.
		theirs.Phase, theirs.Reason, theirs.Message = "", "", ""
	}
	s := status.Merge(theirs, *said)
	if s.QOSClass == "" {
		s.QOSClass = old.QOSClass // the server's own: who says none would say so for ever
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		was, news := status.Condition(old.Conditions, c.Type), status.Condition(said.Conditions, c.Type)
		switch {
		case c.Type == v1.DisruptionTarget && was != nil && sameCondition(*was, *c):
			c.LastTransitionTime = was.LastTransitionTime
		case c.Type == v1.DisruptionTarget: // it is told with the end, and dates from then (st-75)
			c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		case news == nil || news.Status == c.Status:
		case was != nil && was.Status == c.Status: // told before
			c.LastTransitionTime = was.LastTransitionTime
		case status.Owned(c.Type): // readiness that ended with the pod (st-78)
			c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		}
	}
	// In the order in which they are there: a patch would carry another one, and
	// nothing else.
	place := func(t v1.PodConditionType) int {
		i := slices.IndexFunc(old.Conditions, func(c v1.PodCondition) bool { return c.Type == t })
		if i < 0 {
			return len(old.Conditions)
		}
		return i
	}
	slices.SortStableFunc(s.Conditions, func(a, b v1.PodCondition) int { return place(a.Type) - place(b.Type) })
	return s
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
