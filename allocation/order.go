package allocation

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/qos"
)

// A waiting is a resize that is to be decided.
type waiting struct {
	desired, granted *v1.Pod
	state            State
}

// arrange puts resizes in the order in which they are decided (al-6): those that
// ask for no more than they have, which may make room for the rest; then by
// priority; Guaranteed pods before others; and those that wait longest. Equals
// go by UID, so that the order is always the same.
func arrange(list []waiting) {
	slices.SortFunc(list, func(a, b waiting) int {
		if x, y := asksMore(&a), asksMore(&b); x != y {
			return first(y)
		}
		if x, y := priority(a.desired), priority(b.desired); x != y {
			return first(x > y)
		}
		if x, y := guaranteed(a.desired), guaranteed(b.desired); x != y {
			return first(x)
		}
		if x, y := a.state.PendingSince, b.state.PendingSince; !x.Equal(y) {
			// One that was never refused has waited least.
			return first(!x.IsZero() && (y.IsZero() || x.Before(y)))
		}
		return strings.Compare(string(a.desired.UID), string(b.desired.UID))
	})
}

// first is what a comparison returns if its first operand goes first, or not.
func first(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// asksMore reports whether the pod asks for more of anything than it was
// granted.
func asksMore(w *waiting) bool {
	wants := helpers.PodRequests(w.desired, helpers.PodResourcesOptions{})
	has := helpers.PodRequests(w.granted, helpers.PodResourcesOptions{})
	for name := range wants {
		if less(has, wants, name) {
			return true
		}
	}
	return false
}

func priority(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func guaranteed(pod *v1.Pod) bool { return qos.Class(pod) == v1.PodQOSGuaranteed }
