package qos

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// SystemCriticalPriority is the lowest priority of critical pods, that of the class
// system-cluster-critical.
const SystemCriticalPriority = 2_000_000_000

// IsCritical reports whether the pod is critical to the node: it is static, a mirror pod,
// or has a system-critical priority.
func IsCritical(pod *v1.Pod) bool {
	return runtime.IsStatic(pod) || runtime.IsMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= SystemCriticalPriority
}
