package podconfig

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// oomScoreAdj returns how ready the kernel should be to kill the container
// (cm-35).
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
		// A sidecar is not killed before the containers it serves (cm-36).
		least := capacity
		for i := range pod.Spec.Containers {
			least = min(least, memory(&pod.Spec.Containers[i]))
		}
		request = max(request, least)
	}
	adj := 1000 - int64(min(1000*((request+sharedMemory(pod))/capacity), 1000))
	return min(max(adj, 3), 999)
}

// sharedMemory returns a container's part of the memory that the pod as a whole
// requests beyond the requests of its containers (cm-36).
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

// memory returns the bytes of memory that the container requests.
func memory(c *v1.Container) float64 { return float64(c.Resources.Requests.Memory().Value()) }
