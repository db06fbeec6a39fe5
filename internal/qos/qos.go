// Package qos computes the quality of service class of a pod, which determines the
// resources of its containers, and the kernel's CPU settings for CPU requests and limits.
package qos

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Class returns the quality of service class of a pod from its spec, regardless of its
// status (rule st-46):
//
//   - Guaranteed: all containers have limits of cpu and memory, and requests equal to them;
//   - BestEffort: no container has a request or limit of cpu or memory;
//   - Burstable: all other pods.
//
// If the pod has pod-level requests or limits, only these are used. A missing request is
// equal to the limit, as with the API's defaults.
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

// asks reports whether r has a request or limit of cpu or memory, and whether it has
// limits of both with equal requests.
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

// positive returns a quantity of the list, and whether it is greater than zero.
func positive(list v1.ResourceList, name v1.ResourceName) (resource.Quantity, bool) {
	q, ok := list[name]
	return q, ok && q.Sign() > 0
}
