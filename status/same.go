package status

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Same reports whether two statuses say the same about what the node has to
// say (st-49). It looks past what others own (their conditions, resource
// claims), past the times of conditions, and past the order of conditions.
func Same(a, b *v1.PodStatus) bool {
	if len(a.Conditions) > 0 || len(b.Conditions) > 0 {
		if !sameConditions(a.Conditions, b.Conditions) || !sameConditions(b.Conditions, a.Conditions) {
			return false
		}
	}
	x, y := owned(a), owned(b)
	return equality.Semantic.DeepEqual(&x, &y)
}

// sameConditions reports whether each owned condition in a is also in b.
func sameConditions(a, b []v1.PodCondition) bool {
	for i := range a {
		if !Owned(a[i].Type) && a[i].Type != v1.DisruptionTarget {
			continue
		}
		other := Condition(b, a[i].Type)
		if other == nil {
			return false
		}
		x, y := a[i], *other
		x.LastProbeTime, y.LastProbeTime = metav1.Time{}, metav1.Time{}
		x.LastTransitionTime, y.LastTransitionTime = metav1.Time{}, metav1.Time{}
		if x != y {
			return false
		}
	}
	return true
}

// owned returns a shallow copy without conditions and without what others own.
func owned(s *v1.PodStatus) v1.PodStatus {
	c := *s
	c.Conditions = nil
	c.NominatedNodeName = ""
	c.ResourceClaimStatuses = nil
	c.ExtendedResourceClaimStatus = nil
	c.NodeAllocatableResourceClaimStatuses = nil
	return c
}
