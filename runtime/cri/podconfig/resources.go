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
	if n.CgroupVersion == 2 && !n.SingleProcessOOMKill {
		unified(out, "memory.oom.group", 1)
	}
	n.protectMemory(out, pod, c)
	n.limitSwap(out, pod, c)
	return out
}

// basic converts requests and limits of CPU and memory to the kernel's settings.
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
	if out.Unified == nil {
		out.Unified = map[string]string{}
	}
	out.Unified[key] = strconv.FormatInt(value, 10)
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
// it throttles the container (rules cm-38, cm-39).
func (n Node) protectMemory(out *runtimeapi.LinuxContainerResources, pod *v1.Pod, c *v1.Container) {
	if !n.MemoryQoS.Enabled || n.CgroupVersion != 2 {
		return
	}
	request := c.Resources.Requests.Memory().Value()
	if request > 0 {
		switch class := podspec.QOSClass(pod); {
		case n.MemoryQoS.Reserve == ReserveAll,
			n.MemoryQoS.Reserve == ReserveTiered && class == v1.PodQOSGuaranteed:
			unified(out, "memory.min", request)
		case n.MemoryQoS.Reserve == ReserveTiered && class == v1.PodQOSBurstable:
			unified(out, "memory.low", request)
		}
	}
	limit := out.MemoryLimitInBytes
	factor, page := n.MemoryQoS.ThrottlingFactor, n.MemoryQoS.PageSize
	if factor <= 0 || request == limit && request > 0 { // the limit applies first
		return
	}
	if limit <= 0 {
		if limit = n.AllocatableMemory; limit <= 0 {
			limit = n.MemoryBytes
		}
	}
	if page <= 0 {
		page = 4096
	}
	high := int64(float64(request)+factor*float64(limit-request)) / page * page
	if high > request {
		unified(out, "memory.high", high)
	}
}
