package cri

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/qos"
	"github.com/kubeparts/kubeparts/internal/restart"
)

// linuxResources turns requests and limits into what the kernel has (cm-32).
func linuxResources(res *v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	cpu, ok := res.Requests[v1.ResourceCPU]
	if limit, limited := res.Limits[v1.ResourceCPU]; !ok && limited {
		cpu = limit
	}
	out := &runtimeapi.LinuxContainerResources{CpuShares: cpuShares(cpu)}
	if limit, ok := res.Limits[v1.ResourceCPU]; ok && !limit.IsZero() {
		out.CpuPeriod = cfsPeriod
		out.CpuQuota = max(limit.MilliValue()*cfsPeriod/1000, 1000)
	}
	if limit, ok := res.Limits[v1.ResourceMemory]; ok {
		out.MemoryLimitInBytes = limit.Value()
	}
	return out
}

const cfsPeriod = 100_000 // microseconds

// cpuShares turns a CPU request into cgroup v1 shares, 2 … 262144.
func cpuShares(q resource.Quantity) int64 {
	return min(max(q.MilliValue()*1024/1000, 2), 262144)
}

// oomScoreAdj returns how ready the kernel should be to kill the container
// (cm-35).
func oomScoreAdj(pod *v1.Pod, c *v1.Container, capacity int64) int64 {
	if pod.Spec.PriorityClassName == "system-node-critical" {
		return -997
	}
	switch qos.Class(pod) {
	case v1.PodQOSGuaranteed:
		return -997
	case v1.PodQOSBestEffort:
		return 1000
	}
	if capacity <= 0 {
		return 999
	}
	request := c.Resources.Requests.Memory().Value()
	if restart.Sidecar(c) {
		// A sidecar is not killed before the containers it serves (cm-36).
		least := int64(math.MaxInt64)
		for i := range pod.Spec.Containers {
			least = min(least, pod.Spec.Containers[i].Resources.Requests.Memory().Value())
		}
		request = max(request, min(least, capacity))
	}
	adj := 1000 - int64(1000*(float64(request)/float64(capacity)))
	return min(max(adj, 3), 999)
}
