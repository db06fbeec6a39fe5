package podconfig

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// oomScoreAdj returns the OOM score adjustment of the container, from -1000 (killed last) to
// 1000 (rule cm-35).
func oomScoreAdj(n Node, pod *v1.Pod, c *v1.Container) int64 {
	if pod.Spec.PriorityClassName == "system-node-critical" {
		return -997
	}
	switch podspec.QOSClass(pod) {
	case v1.PodQOSGuaranteed:
		return -997
	case v1.PodQOSBestEffort:
		return 1000
	}
	capacity := float64(n.MemoryBytes)
	if capacity <= 0 {
		return 999
	}
	request := memory(c)
	if podspec.IsSidecar(c) {
		// A sidecar must not be killed before regular containers (rule cm-36).
		least := capacity
		for i := range pod.Spec.Containers {
			least = min(least, memory(&pod.Spec.Containers[i]))
		}
		request = max(request, least)
	}
	adj := 1000 - int64(min(1000*((request+sharedMemory(pod))/capacity), 1000))
	return min(max(adj, 3), 999)
}

// sharedMemory returns a container's share, in bytes, of the pod-level memory request that
// exceeds the requests of the containers.
func sharedMemory(pod *v1.Pod) float64 {
	if pod.Spec.Resources == nil {
		return 0
	}
	rest, containers := float64(pod.Spec.Resources.Requests.Memory().Value()), 0.0
	add := func(c *v1.Container) {
		rest -= memory(c)
		containers++
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			add(c)
		}
	}
	if containers == 0 {
		return 0
	}
	return max(rest, 0) / containers
}

// memory returns the memory request of the container in bytes.
func memory(c *v1.Container) float64 { return float64(c.Resources.Requests.Memory().Value()) }
