package podspec

import (
	"slices"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// SystemCriticalPriority is the lowest priority of critical pods, that of the class
// system-cluster-critical.
const SystemCriticalPriority = 2_000_000_000

// IsCritical reports whether the pod is critical to the node: it is static, a mirror pod,
// or has a system-critical priority.
func IsCritical(pod *v1.Pod) bool {
	return runtime.IsStatic(pod) || runtime.IsMirror(pod) || Priority(pod) >= SystemCriticalPriority
}

// Priority returns the priority of the pod, zero if it has none.
func Priority(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// Tolerates reports whether the pod tolerates a taint. The operators Lt and Gt are supported;
// only an API server that supports them accepts such a pod.
func Tolerates(pod *v1.Pod, taint v1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &taint, true)
	})
}
