package allocation

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// A pendingResize is a resize to be decided.
type pendingResize struct {
	desired, allocated *v1.Pod
	state              ResizeState
}

// sortPending sorts resizes in the order of their decision (rule al-6): first those that increase no
// request, which may free resources for others; then by priority; Guaranteed pods before others;
// and those that have been pending for the longest time. Ties are broken by UID.
func sortPending(list []pendingResize) {
	slices.SortFunc(list, func(a, b pendingResize) int {
		if x, y := increases(&a), increases(&b); x != y {
			return first(y)
		}
		if x, y := podspec.Priority(a.desired), podspec.Priority(b.desired); x != y {
			return first(x > y)
		}
		if x, y := guaranteed(a.desired), guaranteed(b.desired); x != y {
			return first(x)
		}
		if x, y := a.state.PendingSince, b.state.PendingSince; !x.Equal(y) {
			// A resize that was never rejected has the shortest time.
			return first(!x.IsZero() && (y.IsZero() || x.Before(y)))
		}
		return strings.Compare(string(a.desired.UID), string(b.desired.UID))
	})
}

// first returns the result of a comparison whose first operand is or is not first.
func first(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// increases reports whether the pod requests more of a resource than it is allocated.
func increases(w *pendingResize) bool {
	requested := helpers.PodRequests(w.desired, helpers.PodResourcesOptions{})
	allocated := helpers.PodRequests(w.allocated, helpers.PodResourcesOptions{})
	for name := range requested {
		if less(allocated, requested, name) {
			return true
		}
	}
	return false
}

func guaranteed(pod *v1.Pod) bool { return podspec.QOSClass(pod) == v1.PodQOSGuaranteed }
