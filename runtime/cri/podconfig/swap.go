package podconfig

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// limitSwap sets the swap limit of the container (rule cm-40).
func (n Node) limitSwap(out *runtimeapi.LinuxContainerResources, pod *v1.Pod, c *v1.Container) {
	if !n.Swap.Controller {
		return
	}
	switch n.CgroupVersion {
	case 2:
		unified(out, "memory.swap.max", n.swap(pod, c))
	case 1:
		out.MemorySwapLimitInBytes = out.MemoryLimitInBytes // memory and swap together
	}
}

// MaySwap reports whether the container may swap (rule cm-41). The amount depends on its
// memory request, so a resize of its memory changes the swap limit too;
// allocation.NodeConstraints needs this.
func (n Node) MaySwap(pod *v1.Pod, c *v1.Container) bool {
	request, limit := c.Resources.Requests.Memory(), c.Resources.Limits.Memory()
	return n.Swap.Controller && n.Swap.Limited && n.CgroupVersion == 2 && !podspec.IsCritical(pod) &&
		podspec.QOSClass(pod) == v1.PodQOSBurstable && request.Sign() > 0 && request.Cmp(*limit) != 0
}

// swap returns the bytes that the container may swap: its share of Swap.Bytes is
// the share of its memory request in MemoryBytes (rule cm-42).
func (n Node) swap(pod *v1.Pod, c *v1.Container) int64 {
	request := c.Resources.Requests.Memory()
	if !n.MaySwap(pod, c) || n.MemoryBytes <= 0 || request.Value() > n.MemoryBytes {
		return 0
	}
	return int64(float64(request.Value()) / float64(n.MemoryBytes) * float64(max(n.Swap.Bytes, 0)))
}
