package podconfig

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Resources returns what the runtime is told when container c is to have all as
// its CPU and memory, while it runs (al-16). What else its spec asks for stays.
func Resources(in Input, c *v1.Container, all v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	resized := *c
	resized.Resources.Requests = replaced(c.Resources.Requests, all.Requests)
	resized.Resources.Limits = replaced(c.Resources.Limits, all.Limits)
	return containerResources(in, &resized)
}

// LinuxResources returns CPU and memory as the kernel has them (cm-32), without
// what a container's pod and its other resources would add.
func LinuxResources(n Node, all v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	return n.basic(all.Requests, all.Limits)
}

// PodResources returns what the runtime is told the containers of a pod may use
// together (al-17).
func PodResources(in Input, all v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	out := LinuxResources(in.Node, all)
	if len(in.ExclusiveCPUs) > 0 {
		unlimitCPU(out)
	}
	return out
}

// Overhead returns what the pod's sandbox takes itself (rt-23).
func Overhead(in Input) *runtimeapi.LinuxContainerResources { return overhead(in.Node, in.Pod) }

// replaced returns list with the CPU and memory of by.
func replaced(list, by v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for name, q := range list {
		if name != v1.ResourceCPU && name != v1.ResourceMemory {
			out[name] = q
		}
	}
	for name, q := range by {
		out[name] = q
	}
	return out
}
