package podspec

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOSClass returns the quality of service class of a pod, computed from its spec;
// its status is not read (rule st-46):
//
//   - Guaranteed: all containers have limits of CPU and memory, equal to the requests;
//   - BestEffort: no container has a request or a limit of CPU or memory;
//   - Burstable: all others.
//
// If the pod has requests or limits at pod level, these alone are used. A missing
// request of a container equals the limit, as the API server defaults it; one of the pod
// does not, since only API servers default it (rule src-35).
func QOSClass(pod *v1.Pod) v1.PodQOSClass {
	if HasPodResources(pod) {
		some, full := cpuAndMemory(pod.Spec.Resources)
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			_, requested := positive(pod.Spec.Resources.Requests, name)
			full = full && requested
		}
		return qosClass(some, full)
	}
	some, all := false, len(pod.Spec.Containers) > 0
	for c := range Containers(pod) {
		set, full := cpuAndMemory(&c.Resources)
		some, all = some || set, all && full
	}
	return qosClass(some, all)
}

// HasPodResources reports whether a pod has requests or limits at pod level.
func HasPodResources(pod *v1.Pod) bool {
	r := pod.Spec.Resources
	if r == nil {
		return false
	}
	for _, list := range []v1.ResourceList{r.Requests, r.Limits} {
		for name := range list {
			if name == v1.ResourceCPU || name == v1.ResourceMemory || IsHugePages(name) {
				return true
			}
		}
	}
	return false
}

func qosClass(some, all bool) v1.PodQOSClass {
	switch {
	case !some:
		return v1.PodQOSBestEffort
	case all:
		return v1.PodQOSGuaranteed
	default:
		return v1.PodQOSBurstable
	}
}

// cpuAndMemory reports whether r has a request or a limit of CPU or memory, and
// whether it has limits of both with equal requests.
func cpuAndMemory(r *v1.ResourceRequirements) (some, full bool) {
	full = true
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		limit, limited := positive(r.Limits, name)
		request, requested := positive(r.Requests, name)
		some = some || limited || requested
		full = full && limited && (!requested || request.Cmp(limit) == 0)
	}
	return some, full
}

// IsGuaranteed reports whether a container has equal requests and limits of CPU and memory. In a Guaranteed pod with
// resources at pod level, only such a container may have resources of its own (KEP-5526).
func IsGuaranteed(c *v1.Container) bool {
	_, full := cpuAndMemory(&c.Resources)
	return full
}

// NoQuota reports whether a pod has no CPU quota because of exclusive CPUs, on which it would be throttled, given
// the names of the containers that have some: one of them is enough, and in a pod with resources at pod level,
// whose quota the others share, all are required.
func NoQuota(pod *v1.Pod, exclusive []string) bool {
	if !HasPodResources(pod) {
		return len(exclusive) > 0
	}
	return len(exclusive) == len(pod.Spec.InitContainers)+len(pod.Spec.Containers)
}

// positive returns a quantity of the list if it is above zero.
func positive(list v1.ResourceList, name v1.ResourceName) (resource.Quantity, bool) {
	q, ok := list[name]
	return q, ok && q.Sign() > 0
}
