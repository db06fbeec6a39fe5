package cpu

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// exclusiveCPUs returns the number of exclusive CPUs of the container: its request, if
// that is a whole number and the pod is Guaranteed (rule cpu-3); otherwise 0. Containers
// of a pod with pod-level resources have none.
func exclusiveCPUs(pod *v1.Pod, c *v1.Container) int {
	if pod.Spec.Resources != nil || podspec.QOSClass(pod) != v1.PodQOSGuaranteed {
		return 0
	}
	amount, ok := c.Resources.Requests[v1.ResourceCPU]
	if !ok {
		amount = c.Resources.Limits[v1.ResourceCPU]
	}
	const most = 1 << 16 // more CPUs than any machine has
	if whole := amount.Value(); whole > 0 && whole < most && amount.MilliValue() == whole*1000 {
		return int(whole)
	}
	return 0
}

// podExclusiveCPUs returns the maximum number of exclusive CPUs that the containers of a
// pod have at the same time.
func podExclusiveCPUs(pod *v1.Pod) int {
	sidecars, peak := 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if podspec.IsSidecar(c) {
			sidecars += exclusiveCPUs(pod, c)
			peak = max(peak, sidecars)
		} else {
			peak = max(peak, sidecars+exclusiveCPUs(pod, c))
		}
	}
	sum := sidecars
	for i := range pod.Spec.Containers {
		sum += exclusiveCPUs(pod, &pod.Spec.Containers[i])
	}
	return max(peak, sum)
}
