package podconfig

import (
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// containerResources returns the resources of a container (rules cm-32 to cm-42).
func containerResources(in PodInput, c *v1.Container) *runtimeapi.LinuxContainerResources {
	n, pod := in.Node, in.Pod
	out := n.basic(c.Resources.Requests, podspec.Limits(pod, c))
	if slices.Contains(in.ExclusiveCPUs, c.Name) {
		unlimitCPU(out)
	}
	out.OomScoreAdj = oomScoreAdj(n, pod, c)
	out.HugepageLimits = hugePages(n, podspec.Limits(pod, c))
	n.protectMemory(out, pod, c)
	n.limitSwap(out, pod, c)
	return out
}

// basic converts requests and limits of CPU and memory of a container, or of a pod for its sandbox, to the kernel's
// settings.
func (n Node) basic(requests, limits v1.ResourceList) *runtimeapi.LinuxContainerResources {
	res := v1.ResourceRequirements{Requests: requests, Limits: limits}
	out := &runtimeapi.LinuxContainerResources{CpuShares: cgroups.Shares(podspec.MilliCPU(cpuRequest(&res)))}
	if !n.NoCPUQuota {
		out.CpuPeriod = period(n.CPUPeriod) // set even without a limit, as in the kubelet
		if limit, ok := limits[v1.ResourceCPU]; ok && !limit.IsZero() {
			out.CpuQuota = cgroups.Quota(podspec.MilliCPU(limit), out.CpuPeriod)
		}
	}
	if limit, ok := limits[v1.ResourceMemory]; ok {
		out.MemoryLimitInBytes = limit.Value()
	}
	if n.CgroupVersion == 2 && !n.SingleProcessOOMKill {
		unified(out, "memory.oom.group", 1)
	}
	return out
}

// unlimitCPU removes the CPU quota.
func unlimitCPU(r *runtimeapi.LinuxContainerResources) {
	if r.CpuQuota > 0 {
		r.CpuQuota = -1
	}
}

// cpuRequest returns the CPU request, which may be zero, else the limit.
func cpuRequest(res *v1.ResourceRequirements) resource.Quantity {
	if cpu, ok := res.Requests[v1.ResourceCPU]; ok {
		return cpu
	}
	return res.Limits[v1.ResourceCPU]
}

// period returns the period of CPU limits in microseconds.
func period(d time.Duration) int64 {
	if d <= 0 {
		d = 100 * time.Millisecond
	}
	return d.Microseconds()
}

// unified sets a setting of cgroup v2.
func unified(out *runtimeapi.LinuxContainerResources, key string, value int64) {
	unifiedText(out, key, strconv.FormatInt(value, 10))
}

func unifiedText(out *runtimeapi.LinuxContainerResources, key, value string) {
	if out.Unified == nil {
		out.Unified = map[string]string{}
	}
	out.Unified[key] = value
}

// hugePages returns a limit for each page size of the machine, zero if the container has
// none (rule cm-37).
func hugePages(n Node, limits v1.ResourceList) []*runtimeapi.HugepageLimit {
	byBytes := map[int64]int64{}
	for name, limit := range limits {
		if size := podspec.HugePagesSize(name); size > 0 {
			byBytes[size] = limit.Value()
		}
	}
	var out []*runtimeapi.HugepageLimit
	for _, size := range n.HugePageSizes {
		out = append(out, &runtimeapi.HugepageLimit{PageSize: cgroups.PageSizeName(size), Limit: uint64(max(byBytes[size], 0))})
	}
	return out
}

// protectMemory sets the memory that the kernel does not reclaim, and the usage from which
// it throttles the container (rules cm-38, cm-39). Values of an earlier configuration are
// reset, since the container may be updated instead of created.
func (n Node) protectMemory(out *runtimeapi.LinuxContainerResources, pod *v1.Pod, c *v1.Container) {
	if n.CgroupVersion != 2 {
		return
	}
	if !n.MemoryQoS.Enabled {
		unifiedText(out, "memory.high", "max")
		return
	}
	request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
	switch reserve := n.MemoryQoS.Reserve; {
	case request <= 0 || reserve == cgroups.ReserveNone:
		unified(out, "memory.min", 0)
		unified(out, "memory.low", 0)
	case reserve == cgroups.ReserveAll || podspec.QOSClass(pod) == v1.PodQOSGuaranteed:
		unified(out, "memory.min", request)
	default:
		unified(out, "memory.low", request)
	}
	if limit <= 0 {
		if of := pod.Spec.Resources; of != nil && of.Limits.Memory().Value() > 0 {
			return // the pod's cgroup is throttled
		}
		if limit = n.AllocatableMemory; limit <= 0 {
			limit = n.MemoryBytes
		}
	} else if limit == request {
		return // the limit applies first
	}
	if high := cgroups.MemoryHigh(request, limit, n.MemoryQoS.ThrottlingFactor, n.MemoryQoS.PageSize); high > 0 {
		unified(out, "memory.high", high)
	}
}
