// Package qos knows the quality of service class of a pod, which its status
// shows and which its containers' resources follow from, and what the kernel
// makes of the CPU they ask for.
package qos

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Class returns the quality of service class of a pod by its spec (st-46),
// whatever its status says:
//
//   - Guaranteed: cpu and memory are limited everywhere, and what is requested
//     is the limit;
//   - BestEffort: no cpu and no memory is requested or limited anywhere;
//   - Burstable: all else.
//
// Requests and limits of the pod as a whole decide alone, if it has them. A
// request left out counts as the limit, as the API's defaults have it.
func Class(pod *v1.Pod) v1.PodQOSClass {
	if r := pod.Spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		return class(asks(r))
	}
	some, all := false, len(pod.Spec.Containers) > 0
	for c := range podspec.Containers(pod) {
		asked, full := asks(&c.Resources)
		some, all = some || asked, all && full
	}
	return class(some, all)
}

func class(some, all bool) v1.PodQOSClass {
	switch {
	case !some:
		return v1.PodQOSBestEffort
	case all:
		return v1.PodQOSGuaranteed
	default:
		return v1.PodQOSBurstable
	}
}

// asks reports whether r asks for any cpu or memory, and whether it asks for
// both with requests equal to limits.
func asks(r *v1.ResourceRequirements) (some, full bool) {
	full = true
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		limit, limited := positive(r.Limits, name)
		request, requested := positive(r.Requests, name)
		some = some || limited || requested
		full = full && limited && (!requested || request.Cmp(limit) == 0)
	}
	return some, full
}

// positive returns a quantity of the list if it is above zero.
func positive(list v1.ResourceList, name v1.ResourceName) (resource.Quantity, bool) {
	q, ok := list[name]
	return q, ok && q.Sign() > 0
}
