package memory

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// exclusiveMemory returns the memory to allocate to the container: its requests, if the
// pod is Guaranteed (rule mem-3); otherwise nil. In a pod with pod-level resources, which are what
// Guaranteed refers to, only containers with equal requests and limits have any, and without a
// scope no container has (see Config.PodLevel).
func exclusiveMemory(pod *v1.Pod, c *v1.Container, scope topology.Scope) Request {
	if podspec.QOSClass(pod) != v1.PodQOSGuaranteed {
		return nil
	}
	if podspec.HasPodResources(pod) && (scope == "" || !podspec.IsGuaranteed(c)) {
		return nil
	}
	return requested(c.Resources)
}

// requested returns the requested amounts above zero; nil if there are none.
func requested(r v1.ResourceRequirements) Request {
	var req Request
	for _, list := range []v1.ResourceList{r.Limits, r.Requests} {
		for kind, amount := range list {
			if kind != v1.ResourceMemory && !podspec.IsHugePages(kind) || amount.Sign() <= 0 {
				continue
			}
			if req == nil {
				req = Request{}
			}
			req[kind] = uint64(amount.Value())
		}
	}
	return req
}

// podExclusiveMemory returns the maximum memory that the containers of a pod have at the
// same time, or the size of its pool if it has one.
func podExclusiveMemory(pod *v1.Pod, scope topology.Scope) Request {
	if scope.Pools(pod) {
		return requested(*pod.Spec.Resources)
	}
	sidecars, peak := Request{}, Request{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		wants := exclusiveMemory(pod, c, scope)
		if podspec.IsSidecar(c) {
			sidecars.add(wants)
			peak.raise(sidecars)
			continue
		}
		wants = wants.plus(sidecars)
		peak.raise(wants)
	}
	for i := range pod.Spec.Containers {
		sidecars.add(exclusiveMemory(pod, &pod.Spec.Containers[i], scope))
	}
	peak.raise(sidecars)
	return peak
}

func (r Request) add(other Request) {
	for kind, size := range other {
		r[kind] += size
	}
}

func (r Request) plus(other Request) Request {
	sum := Request{}
	sum.add(r)
	sum.add(other)
	return sum
}

func (r Request) raise(other Request) {
	for kind, size := range other {
		r[kind] = max(r[kind], size)
	}
}

// checkReserved returns an error if the reservations by node do not add up to total. Both
// must have the same kinds of memory.
func checkReserved(nodes map[int]bool, reserved map[int]Request, total Request) error {
	sum := Request{}
	for id, kinds := range reserved {
		if !nodes[id] {
			return fmt.Errorf("memory: reserved memory is for NUMA node %d, which does not exist", id)
		}
		sum.add(kinds)
	}
	for kind := range sum.plus(total) {
		if sum[kind] != total[kind] {
			return fmt.Errorf("memory: the total amount %d of type %q is not equal to the value %d determined by Node Allocatable feature", sum[kind], kind, total[kind])
		}
	}
	return nil
}
