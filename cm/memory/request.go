package memory

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/hugepages"
	"github.com/kubeparts/kubeparts/internal/qos"
	"github.com/kubeparts/kubeparts/internal/restart"
)

// Wants returns what memory the container is to have for itself: what it requests,
// if the pod is Guaranteed (mem-3). Nil: none. Containers of a pod that asks for
// resources as a whole get none.
func Wants(pod *v1.Pod, c *v1.Container) Request {
	if pod.Spec.Resources != nil || qos.Class(pod) != v1.PodQOSGuaranteed {
		return nil
	}
	var req Request
	for _, list := range []v1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for kind, amount := range list {
			if kind != v1.ResourceMemory && !hugepages.Is(kind) || amount.Sign() <= 0 {
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

// podWants returns what the containers of a pod have at the same time, at most.
func podWants(pod *v1.Pod) Request {
	sidecars, peak := Request{}, Request{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		wants := Wants(pod, c)
		if restart.Sidecar(c) {
			sidecars.add(wants)
			peak.raise(sidecars)
			continue
		}
		wants = wants.plus(sidecars)
		peak.raise(wants)
	}
	for i := range pod.Spec.Containers {
		sidecars.add(Wants(pod, &pod.Spec.Containers[i]))
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

// CheckReserved holds what is reserved by node against what is reserved in all:
// system and agent, and the threshold of hard eviction (mem-2). total holds no
// kind that is not reserved. An error names the kind or the node.
func CheckReserved(nodes map[int]bool, reserved map[int]Request, total Request) error {
	sum := Request{}
	for id, kinds := range reserved {
		if !nodes[id] {
			return fmt.Errorf("memory: reserved memory names NUMA node %d, which is not there", id)
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
