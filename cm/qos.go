package cm

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// kubepods is the cgroup that contains all pods: the cgroups of QoS classes and of
// Guaranteed pods.
const kubepods = "kubepods"

// classPart returns the path of the QoS class below kubepods.
func classPart(class v1.PodQOSClass) []string {
	switch class {
	case v1.PodQOSBurstable:
		return []string{"burstable"}
	case v1.PodQOSBestEffort:
		return []string{"besteffort"}
	default:
		return nil
	}
}

// PodName returns the cgroup of a pod.
func PodName(root cgroups.Name, pod *v1.Pod) cgroups.Name {
	return podName(root, podspec.QOSClass(pod), string(pod.UID))
}

func podName(root cgroups.Name, class v1.PodQOSClass, uid string) cgroups.Name {
	return root.Child(kubepods).Child(classPart(class)...).Child(cgroups.PodPart(uid))
}

// podRequest is the sum of the requests of the pods of one class.
type podRequest struct{ MilliCPU, Memory int64 }

// add and sub count one pod. Requests are bounded, so that the sum does not overflow.
func (r *podRequest) add(o podRequest) { r.MilliCPU += o.MilliCPU; r.Memory += o.Memory }
func (r *podRequest) sub(o podRequest) { r.MilliCPU -= o.MilliCPU; r.Memory -= o.Memory }

const mostMemory = 1 << 50 // upper bound of a pod's request

func requestedBy(pod *v1.Pod) podRequest {
	requests, _ := podTotals(pod)
	return podRequest{MilliCPU: podspec.MilliCPU(requests[v1.ResourceCPU]), Memory: min(max(requests.Memory().Value(), 0), mostMemory)}
}

// classDemand is what pods request, by class. BestEffort pods request nothing.
type classDemand struct{ Guaranteed, Burstable podRequest }

func (d *classDemand) add(class v1.PodQOSClass, r podRequest) {
	if of := d.of(class); of != nil {
		of.add(r)
	}
}

func (d *classDemand) sub(class v1.PodQOSClass, r podRequest) {
	if of := d.of(class); of != nil {
		of.sub(r)
	}
}

// of returns the demand of one class; nil if its pods request nothing.
func (d *classDemand) of(class v1.PodQOSClass) *podRequest {
	switch class {
	case v1.PodQOSGuaranteed:
		return &d.Guaranteed
	case v1.PodQOSBurstable:
		return &d.Burstable
	default:
		return nil
	}
}

// qosLimits are the limits of the cgroups of the two lower classes (rules cm-18, cm-19),
// and the protected memory of kubepods (rule cm-38).
type qosLimits struct{ Kubepods, Burstable, BestEffort cgroups.Resources }

// qosLimits returns the limits of the cgroups of the classes for the demand d, on a node
// with the allocatable resources.
func (p Policy) qosLimits(d classDemand, allocatable v1.ResourceList) qosLimits {
	var out qosLimits
	out.BestEffort.CPUShares = new(int64(cgroups.MinShares))
	out.Burstable.CPUShares = new(cgroups.Shares(d.Burstable.MilliCPU))
	out.Burstable.HugePages, out.BestEffort.HugePages = p.anyHugePages(), p.anyHugePages()
	// Reset the values of an earlier policy.
	for _, r := range []*cgroups.Resources{&out.Kubepods, &out.Burstable} {
		r.MemoryMin, r.MemoryLow = new(int64(0)), new(int64(0))
	}
	switch p.Reserve {
	case cgroups.ReserveAll:
		out.Burstable.MemoryMin = new(d.Burstable.Memory)
		out.Kubepods.MemoryMin = new(d.Burstable.Memory + d.Guaranteed.Memory)
	case cgroups.ReserveTiered:
		// Memory of pods is protected only as far as that of their parents is.
		out.Burstable.MemoryLow = new(d.Burstable.Memory)
		out.Kubepods.MemoryMin, out.Kubepods.MemoryLow = new(d.Guaranteed.Memory+d.Burstable.Memory), new(d.Burstable.Memory)
	}
	if percent, ok := p.QOSReserved[v1.ResourceMemory]; ok {
		if memory := allocatable.Memory().Value(); memory > 0 {
			burstable := max(memory-share(d.Guaranteed.Memory, percent), 0)
			out.Burstable.Memory = new(burstable)
			out.BestEffort.Memory = new(max(burstable-share(d.Burstable.Memory, percent), 0))
		}
	}
	return out
}

// ProtectedMemory returns the requested memory in bytes of Guaranteed pods, which the kernel
// does not reclaim, and of Burstable pods, which it reclaims last. Both are zero unless the
// policy is cgroups.ReserveTiered and the cgroups are of version 2.
func (m *Manager) ProtectedMemory() (guaranteed, burstable int64) {
	if m.cfg.Policy.Reserve != cgroups.ReserveTiered || m.cfg.Pods.Flat || m.facts.Version != 2 {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.demand.Guaranteed.Memory, m.demand.Burstable.Memory
}

func share(amount, percent int64) int64 { return amount / 100 * percent }

// quantity is a whole number.
func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// anyHugePages are the limits of kubepods and the classes: only those of pods count (rule cm-17).
func (p Policy) anyHugePages() map[int64]int64 {
	var limits map[int64]int64
	for _, size := range p.HugePageSizes {
		if limits == nil {
			limits = map[int64]int64{}
		}
		limits[size] = 1 << 62
	}
	return limits
}
