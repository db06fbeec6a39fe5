package cm

import (
	"time"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// A Policy determines the resources of the cgroups of pods.
type Policy struct {
	// NoCPUQuota disables CPU limits.
	NoCPUQuota bool

	// CPUPeriod is the period of CPU quotas. Zero means 100 ms.
	CPUPeriod time.Duration

	// PodPids is the maximum number of processes and threads of a pod. Zero or less means
	// no limit.
	PodPids int64

	// HugePageSizes are the sizes that the kernel supports, in bytes. Pods may use only
	// those that they request.
	HugePageSizes []int64

	// Reserve determines which requested memory the kernel does not reclaim. Cgroup v2
	// only.
	Reserve cgroups.Reservation

	// MemoryQoS protects the memory reserved for daemons in their cgroups (the feature gate
	// of Kubernetes). Cgroup v2 only.
	MemoryQoS bool

	// ThrottlingFactor is the position between the memory request and limit of a pod, from
	// 0 to 1, above which it is throttled, if the pod has resources at pod level. Zero means
	// that pods are not throttled. Cgroup v2 only.
	ThrottlingFactor float64

	// PageSize is the page size of the kernel in bytes, to which the threshold is rounded.
	// Zero means 4096.
	PageSize int64

	// QOSReserved is the percentage of requests that lower QoS classes cannot use, 0 to
	// 100; only for memory.
	QOSReserved map[v1.ResourceName]int64

	// ExclusiveCPUs reports whether a container of the pod has exclusive CPUs: the pod's
	// cgroup then has no CPU quota. It must not block. If nil, no container has any.
	ExclusiveCPUs func(pod *v1.Pod) bool
}

func (p Policy) period() int64 {
	if p.CPUPeriod <= 0 {
		return cgroups.DefaultPeriod
	}
	return p.CPUPeriod.Microseconds()
}

// PodResources returns the resources of the cgroup of a pod. Absent limits are set
// explicitly, so that an existing cgroup is corrected.
func (p Policy) PodResources(pod *v1.Pod) cgroups.Resources {
	class := podspec.QOSClass(pod)
	requests, limits := podTotals(pod)
	r := p.withoutQuota(pod, p.compute(class, requests, limits))
	r.MemoryHigh = p.throttle(pod, requests, limits)
	r.Pids = new(int64(cgroups.Unlimited))
	if p.PodPids > 0 {
		r.Pids = new(p.PodPids)
	}
	if len(p.HugePageSizes) > 0 {
		r.HugePages = make(map[int64]int64, len(p.HugePageSizes))
		for _, size := range p.HugePageSizes {
			r.HugePages[size] = 0 // cm-17
		}
		for name, q := range limits {
			if size := podspec.HugePagesSize(name); size > 0 {
				if _, ok := r.HugePages[size]; ok {
					r.HugePages[size] = max(q.Value(), 0)
				}
			}
		}
	}
	return r
}

// withoutQuota returns r without a CPU quota if a container of the pod has exclusive CPUs:
// the quota would throttle it on these.
func (p Policy) withoutQuota(pod *v1.Pod, r cgroups.Resources) cgroups.Resources {
	if p.ExclusiveCPUs != nil && p.ExclusiveCPUs(pod) {
		r.CPUQuota = new(int64(cgroups.Unlimited))
	}
	return r
}

// compute returns the CPU and memory resources, which Resize changes separately.
func (p Policy) compute(class v1.PodQOSClass, requests, limits v1.ResourceList) cgroups.Resources {
	r := cgroups.Resources{
		CPUShares: new(int64(cgroups.MinShares)),
		CPUQuota:  new(int64(cgroups.Unlimited)), CPUPeriod: new(p.period()),
		Memory:    new(int64(cgroups.Unlimited)),
		MemoryMin: new(int64(0)), MemoryLow: new(int64(0)), // reset the values of an earlier policy
	}
	if class == v1.PodQOSBestEffort {
		return r
	}
	r.CPUShares = new(cgroups.Shares(podspec.MilliCPU(requests[v1.ResourceCPU])))
	if limit, ok := limits[v1.ResourceCPU]; ok && !p.NoCPUQuota {
		if quota := cgroups.Quota(podspec.MilliCPU(limit), p.period()); quota > 0 {
			r.CPUQuota = &quota
		}
	}
	if limit, ok := limits[v1.ResourceMemory]; ok && limit.Sign() > 0 {
		r.Memory = new(limit.Value())
	}
	memory := requests[v1.ResourceMemory]
	switch {
	case memory.Sign() <= 0:
	case p.Reserve == cgroups.ReserveAll, p.Reserve == cgroups.ReserveTiered && class == v1.PodQOSGuaranteed:
		r.MemoryMin = new(memory.Value())
	case p.Reserve == cgroups.ReserveTiered:
		r.MemoryLow = new(memory.Value())
	}
	return r
}

// throttle returns the memory usage from which the pod is throttled. The kernel throttles
// containers without limits of their own with it, and only pods that have resources at pod
// level have such containers and a limit.
func (p Policy) throttle(pod *v1.Pod, requests, limits v1.ResourceList) *int64 {
	unlimited := new(int64(cgroups.Unlimited))
	limit, request := limits.Memory().Value(), requests.Memory().Value()
	if !helpers.IsPodLevelResourcesSet(pod) || limit <= 0 || limit == request {
		return unlimited
	}
	if high := cgroups.MemoryHigh(request, limit, p.ThrottlingFactor, p.PageSize); high > 0 {
		return &high
	}
	return unlimited
}

// podTotals returns the requests and limits of the pod. A limit counts only if every
// container or the pod itself has one (rules cm-13, cm-14).
func podTotals(pod *v1.Pod) (requests, limits v1.ResourceList) {
	requests = helpers.PodRequests(pod, helpers.PodResourcesOptions{})
	limits = helpers.PodLimits(pod, helpers.PodResourcesOptions{})
	podspec.DeletePartial(pod, limits)
	return requests, limits
}
