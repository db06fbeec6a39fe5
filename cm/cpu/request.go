package cpu

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// exclusiveCPUs returns the number of exclusive CPUs of the container: its request, if
// that is a whole number and the pod is Guaranteed (rule cpu-3); otherwise 0. In a pod with
// pod-level resources, which are what Guaranteed refers to, only containers with equal requests
// and limits have exclusive CPUs, and without a scope no container has (see Options.PodLevel).
func exclusiveCPUs(pod *v1.Pod, c *v1.Container, scope topology.Scope) int {
	if podspec.QOSClass(pod) != v1.PodQOSGuaranteed {
		return 0
	}
	if podspec.HasPodResources(pod) && (scope == "" || !podspec.IsGuaranteed(c)) {
		return 0
	}
	return wholeCPUs(c.Resources)
}

// wholeCPUs returns the requested CPUs if they are a whole number, otherwise 0.
func wholeCPUs(r v1.ResourceRequirements) int {
	amount, ok := r.Requests[v1.ResourceCPU]
	if !ok {
		amount = r.Limits[v1.ResourceCPU]
	}
	const most = 1 << 16 // more CPUs than any machine has
	if whole := amount.Value(); whole > 0 && whole < most && amount.MilliValue() == whole*1000 {
		return int(whole)
	}
	return 0
}

// podExclusiveCPUs returns the maximum number of exclusive CPUs that the containers of a
// pod have at the same time, or the size of its pool if it has one.
func podExclusiveCPUs(pod *v1.Pod, scope topology.Scope) int {
	if scope.Pools(pod) {
		return wholeCPUs(*pod.Spec.Resources)
	}
	sidecars, peak := 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if podspec.IsSidecar(c) {
			sidecars += exclusiveCPUs(pod, c, scope)
			peak = max(peak, sidecars)
		} else {
			peak = max(peak, sidecars+exclusiveCPUs(pod, c, scope))
		}
	}
	sum := sidecars
	for i := range pod.Spec.Containers {
		sum += exclusiveCPUs(pod, &pod.Spec.Containers[i], scope)
	}
	return max(peak, sum)
}
