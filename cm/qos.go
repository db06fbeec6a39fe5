package cm

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/qos"
)

// kubepods is the cgroup that holds all pods; below it are those of the classes,
// and Guaranteed pods (section 8.2).
const kubepods = "kubepods"

// classPart is what the class has between kubepods and the pod.
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

// PodName returns the cgroup of a pod (section 8.2).
func PodName(root cgroups.Name, pod *v1.Pod) cgroups.Name {
	return podName(root, qos.Class(pod), string(pod.UID))
}

func podName(root cgroups.Name, class v1.PodQOSClass, uid string) cgroups.Name {
	return root.Child(kubepods).Child(classPart(class)...).Child(cgroups.PodPart(uid))
}

// Requested is what the pods of one class request together.
type Requested struct{ MilliCPU, Memory int64 }

// add and sub count one pod; what a pod is said to request is bounded, so that the
// sum does not overflow.
func (r *Requested) add(o Requested) { r.MilliCPU += o.MilliCPU; r.Memory += o.Memory }
func (r *Requested) sub(o Requested) { r.MilliCPU -= o.MilliCPU; r.Memory -= o.Memory }

const mostMemory = 1 << 50 // a pod's request counts for no more

func requestedBy(pod *v1.Pod) Requested {
	requests, _ := podTotals(pod)
	return Requested{MilliCPU: qos.MilliCPU(requests[v1.ResourceCPU]), Memory: min(max(requests.Memory().Value(), 0), mostMemory)}
}

// Demand is what pods request, by class. BestEffort pods request nothing.
type Demand struct{ Guaranteed, Burstable Requested }

func (d *Demand) add(class v1.PodQOSClass, r Requested) {
	if of := d.of(class); of != nil {
		of.add(r)
	}
}

func (d *Demand) sub(class v1.PodQOSClass, r Requested) {
	if of := d.of(class); of != nil {
		of.sub(r)
	}
}

// of returns the demand of one class; nil if its pods request nothing.
func (d *Demand) of(class v1.PodQOSClass) *Requested {
	switch class {
	case v1.PodQOSGuaranteed:
		return &d.Guaranteed
	case v1.PodQOSBurstable:
		return &d.Burstable
	default:
		return nil
	}
}

// QOSResources are what the cgroups of the two lower classes are to have (cm-18,
// cm-19), and what memory is protected in kubepods (cm-38).
type QOSResources struct{ Kubepods, Burstable, BestEffort cgroups.Resources }

// QOSResources returns what the cgroups of the classes are to have when pods
// request so much, on a node of which pods can have allocatable.
func (p Policy) QOSResources(d Demand, allocatable v1.ResourceList) QOSResources {
	var out QOSResources
	out.BestEffort.CPUShares = new(int64(cgroups.MinShares))
	out.Burstable.CPUShares = new(cgroups.Shares(d.Burstable.MilliCPU))
	for _, size := range p.HugePageSizes {
		for _, r := range []*cgroups.Resources{&out.Burstable, &out.BestEffort} {
			if r.HugePages == nil {
				r.HugePages = map[int64]int64{}
			}
			r.HugePages[size] = 1 << 62 // cm-17
		}
	}
	// Under an earlier policy there may have been more.
	for _, r := range []*cgroups.Resources{&out.Kubepods, &out.Burstable} {
		r.MemoryMin, r.MemoryLow = new(int64(0)), new(int64(0))
	}
	switch p.Reserve {
	case ReserveAll:
		out.Burstable.MemoryMin = new(d.Burstable.Memory)
		out.Kubepods.MemoryMin = new(d.Burstable.Memory + d.Guaranteed.Memory)
	case ReserveTiered:
		// What is protected below is only as far as it is here.
		out.Burstable.MemoryLow = new(d.Burstable.Memory)
		out.Kubepods.MemoryMin, out.Kubepods.MemoryLow = new(d.Guaranteed.Memory), new(d.Burstable.Memory)
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

func share(amount, percent int64) int64 { return amount / 100 * percent }

// quantity is a whole number.
func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }
