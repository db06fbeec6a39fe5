package client

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubeparts/kubeparts/status"
)

// merge returns the status to write: reported, the status of this node, merged by
// status.Merge into old, the status in the API server, with times and order such that the
// patch is minimal. It modifies neither.
func merge(old, reported *v1.PodStatus, mirror bool, now time.Time) v1.PodStatus {
	base := *old
	if mirror {
		// A static pod may run again, and no controller depends on its final phase.
		base.Phase, base.Reason, base.Message = "", "", ""
	}
	s := status.Merge(base, *reported)
	if s.QOSClass == "" {
		s.QOSClass = old.QOSClass // set by the server
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		was, reportedCondition := status.Condition(old.Conditions, c.Type), status.Condition(reported.Conditions, c.Type)
		switch {
		case c.Type == v1.DisruptionTarget && was != nil && sameCondition(*was, *c):
			c.LastTransitionTime = was.LastTransitionTime
		case c.Type == v1.DisruptionTarget: // reported with the final status, at that time (rule st-75)
			c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		case reportedCondition == nil || reportedCondition.Status == c.Status:
		case was != nil && was.Status == c.Status: // written before
			c.LastTransitionTime = was.LastTransitionTime
		case status.Owned(c.Type): // readiness that ended with the pod (rule st-78)
			c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		}
	}
	// Keep the order of the API server, since the patch would contain a changed order.
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

// patch returns the strategic merge patch from old to next of the pod with a UID; nil if
// there is no difference. The UID is a precondition (rule st-67).
func patch(uid types.UID, old, next *v1.PodStatus) ([]byte, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return nil, fmt.Errorf("current status: %w", err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return nil, fmt.Errorf("new status: %w", err)
	}
	p, err := strategicpatch.CreateTwoWayMergeMapPatch(map[string]any{"status": before}, map[string]any{"status": after}, v1.Pod{})
	if err != nil || len(p) == 0 {
		return nil, err
	}
	p["metadata"] = map[string]any{"uid": uid}
	return json.Marshal(p)
}
