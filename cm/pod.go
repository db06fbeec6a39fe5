package cm

import (
	"time"

	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/hugepages"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/qos"
)

// A Policy is how the resources of pods become those of cgroups.
type Policy struct {
	// NoCPUQuota turns limits on CPU off (cm-15).
	NoCPUQuota bool

	// CPUPeriod over which a limit on CPU is kept. Zero: 100 ms (cm-2).
	CPUPeriod time.Duration

	// PodPids is how many processes a pod may have. Zero or less: as many as it
	// likes (cm-16).
	PodPids int64

	// HugePageSizes that the kernel has, in bytes. A pod may use those that it
	// asks for (cm-17).
	HugePageSizes []int64

	// Reserve protects the memory that was requested (cm-38, cm-39). Cgroup v2
	// only.
	Reserve Reservation

	// QOSReserved is the percentage of what pods request that lower classes can't
	// have, 0 to 100; memory only (cm-19).
	QOSReserved map[v1.ResourceName]int64
}

// A Reservation tells whose requested memory the kernel does not take back.
type Reservation int

// The kubelet's default since 1.36 is ReserveNone; ReserveAll is how MemoryQoS was
// before.
const (
	ReserveNone   Reservation = iota
	ReserveTiered             // memory.min for Guaranteed pods, memory.low for Burstable ones
	ReserveAll                // memory.min for both
)

func (p Policy) period() int64 {
	if p.CPUPeriod <= 0 {
		return cgroups.DefaultPeriod
	}
	return p.CPUPeriod.Microseconds()
}

// PodResources returns what the cgroup of a pod is to have (cm-13 … cm-17). Where
// nothing limits it, that is said: a cgroup that was there before is put right.
func (p Policy) PodResources(pod *v1.Pod) cgroups.Resources {
	class := qos.Class(pod)
	requests, limits := podTotals(pod)
	r := p.compute(class, requests, limits)
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
			if size := hugepages.Size(name); size > 0 {
				if _, ok := r.HugePages[size]; ok {
					r.HugePages[size] = max(q.Value(), 0)
				}
			}
		}
	}
	return r
}

// compute is CPU and memory, of which resizes change one at a time.
func (p Policy) compute(class v1.PodQOSClass, requests, limits v1.ResourceList) cgroups.Resources {
	r := cgroups.Resources{
		CPUShares: new(int64(cgroups.MinShares)),
		CPUQuota:  new(int64(cgroups.Unlimited)), CPUPeriod: new(p.period()),
		Memory:    new(int64(cgroups.Unlimited)),
		MemoryMin: new(int64(0)), MemoryLow: new(int64(0)), // under an earlier policy there may have been more
	}
	if class == v1.PodQOSBestEffort {
		return r
	}
	r.CPUShares = new(cgroups.Shares(qos.MilliCPU(requests[v1.ResourceCPU])))
	if limit, ok := limits[v1.ResourceCPU]; ok && !p.NoCPUQuota {
		if quota := cgroups.Quota(qos.MilliCPU(limit), p.period()); quota > 0 {
			r.CPUQuota = &quota
		}
	}
	if limit, ok := limits[v1.ResourceMemory]; ok && limit.Sign() > 0 {
		r.Memory = new(limit.Value())
	}
	memory := requests[v1.ResourceMemory]
	switch {
	case memory.Sign() <= 0:
	case p.Reserve == ReserveAll, p.Reserve == ReserveTiered && class == v1.PodQOSGuaranteed:
		r.MemoryMin = new(memory.Value())
	case p.Reserve == ReserveTiered:
		r.MemoryLow = new(memory.Value())
	}
	return r
}

// podTotals is what the pod requests, and what it is limited to in all (cm-14): a
// limit counts only where every container has one, or the pod has (cm-13).
func podTotals(pod *v1.Pod) (requests, limits v1.ResourceList) {
	requests = helpers.PodRequests(pod, helpers.PodResourcesOptions{})
	limits = helpers.PodLimits(pod, helpers.PodResourcesOptions{})
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if of := pod.Spec.Resources; of != nil {
			if q, ok := of.Limits[name]; ok && q.Sign() > 0 {
				continue
			}
		}
		for c := range podspec.Containers(pod) {
			if q, ok := c.Resources.Limits[name]; !ok || q.Sign() <= 0 {
				delete(limits, name)
			}
		}
	}
	return requests, limits
}
