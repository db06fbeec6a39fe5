package cpu

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/qos"
	"github.com/kubeparts/kubeparts/internal/restart"
)

// Wants returns how many CPUs the container is to have for itself: what it
// requests, if that is whole CPUs and the pod is Guaranteed (cpu-3). 0: it shares.
// Containers of a pod that asks for resources as a whole share.
func Wants(pod *v1.Pod, c *v1.Container) int {
	if pod.Spec.Resources != nil || qos.Class(pod) != v1.PodQOSGuaranteed {
		return 0
	}
	amount, ok := c.Resources.Requests[v1.ResourceCPU]
	if !ok {
		amount = c.Resources.Limits[v1.ResourceCPU]
	}
	const most = 1 << 16 // CPUs, of any machine
	if whole := amount.Value(); whole > 0 && whole < most && amount.MilliValue() == whole*1000 {
		return int(whole)
	}
	return 0
}

// podWants returns how many CPUs the containers of a pod have for themselves at
// the same time, at most.
func podWants(pod *v1.Pod) int {
	sidecars, peak := 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if restart.Sidecar(c) {
			sidecars += Wants(pod, c)
			peak = max(peak, sidecars)
		} else {
			peak = max(peak, sidecars+Wants(pod, c))
		}
	}
	sum := sidecars
	for i := range pod.Spec.Containers {
		sum += Wants(pod, &pod.Spec.Containers[i])
	}
	return max(peak, sum)
}
