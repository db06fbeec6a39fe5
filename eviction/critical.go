package eviction

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// systemCritical is the priority from which on pods are critical.
const systemCritical = 2_000_000_000

// Critical reports whether a pod is never evicted for the node's sake: it is
// static, a mirror of such, or of the highest priority (ev-31, ev-51).
func Critical(pod *v1.Pod) bool {
	return runtime.IsStatic(pod) || runtime.IsMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}
