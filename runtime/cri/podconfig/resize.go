package podconfig

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Resources returns the resources of an UpdateContainerResources request that gives the
// running container c the CPU and memory of all (rule al-16). Its other resources are those
// of its spec.
func Resources(in PodInput, c *v1.Container, all v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	resized := *c
	resized.Resources.Requests = replaced(c.Resources.Requests, all.Requests)
	resized.Resources.Limits = replaced(c.Resources.Limits, all.Limits)
	return containerResources(in, &resized)
}

// LinuxResources converts requests and limits of CPU and memory to the kernel's settings
// (rule cm-32). Settings that depend on a pod or on other resources are not set.
func LinuxResources(n Node, all v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	return n.basic(all.Requests, all.Limits)
}

// PodResources returns the resources of an UpdatePodSandboxResources request: those that
// the containers of the pod share (rule al-17).
func PodResources(in PodInput, all v1.ResourceRequirements) *runtimeapi.LinuxContainerResources {
	out := LinuxResources(in.Node, all)
	if podspec.NoQuota(in.Pod, in.ExclusiveCPUs) {
		unlimitCPU(out)
	}
	return out
}

// Overhead returns the pod overhead of the sandbox (rule rt-23).
func Overhead(in PodInput) *runtimeapi.LinuxContainerResources { return overhead(in.Node, in.Pod) }

// replaced returns list with its CPU and memory replaced by those of by.
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
