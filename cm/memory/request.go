package memory

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/qos"
)

// HugePages returns the name of the resource of huge pages of that size in bytes,
// "hugepages-2Mi".
func HugePages(size uint64) v1.ResourceName {
	return v1.ResourceName(v1.ResourceHugePagesPrefix + resource.NewQuantity(int64(size), resource.BinarySI).String())
}

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
			if kind != v1.ResourceMemory && !strings.HasPrefix(string(kind), v1.ResourceHugePagesPrefix) || amount.Sign() <= 0 {
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
		if sidecar(c) {
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

// sidecar reports whether an init container runs on beside the others.
func sidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// passing reports whether the name is of an init container that ends before the
// next is started.
func passing(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return !sidecar(c)
		}
	}
	return false
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
