package podconfig

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/qos"
	"github.com/kubeparts/kubeparts/runtime"
)

// criticalPriority is the least priority of pods that the node cannot do
// without.
const criticalPriority = 2_000_000_000

// limitSwap sets how much the container may swap (cm-40).
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

// Swaps reports whether the container may swap (cm-41). How much follows from its
// memory request, so that a resize of its memory changes that as well: for
// allocation.NodeConstraints.
func (n Node) Swaps(pod *v1.Pod, c *v1.Container) bool {
	request, limit := c.Resources.Requests.Memory(), c.Resources.Limits.Memory()
	return n.Swap.Controller && n.Swap.Limited && n.CgroupVersion == 2 && !critical(pod) &&
		qos.Class(pod) == v1.PodQOSBurstable && request.Sign() > 0 && request.Cmp(*limit) != 0
}

// swap returns how many bytes the container may swap: none, or the part of the swap
// that its request is of the memory (cm-42).
func (n Node) swap(pod *v1.Pod, c *v1.Container) int64 {
	request := c.Resources.Requests.Memory()
	if !n.Swaps(pod, c) || n.MemoryBytes <= 0 || request.Value() > n.MemoryBytes {
		return 0
	}
	return int64(float64(request.Value()) / float64(n.MemoryBytes) * float64(max(n.Swap.Bytes, 0)))
}

// critical reports whether the node cannot do without the pod: one that the node
// itself brought, or of a priority that only the system has.
func critical(pod *v1.Pod) bool {
	return runtime.IsStatic(pod) || runtime.IsMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority
}
