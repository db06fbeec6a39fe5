package eviction

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/qos"
	"github.com/kubeparts/kubeparts/runtime"
)

// Admit returns nil if a pod may start on a node with these conditions (ev-30 …
// ev-33). Under memory pressure alone, BestEffort pods that do not tolerate it are
// rejected; under disk or PID pressure all pods are. Critical pods are admitted.
func Admit(pod *v1.Pod, conditions []v1.NodeConditionType) *runtime.Rejection {
	return Policy{}.Admit(pod, conditions)
}

// Admit is the function Admit with the policy's critical pods.
func (p Policy) Admit(pod *v1.Pod, conditions []v1.NodeConditionType) *runtime.Rejection {
	if len(conditions) == 0 || p.critical(pod) {
		return nil
	}
	onlyMemory := !slices.ContainsFunc(conditions, func(c v1.NodeConditionType) bool { return c != v1.NodeMemoryPressure })
	if onlyMemory && (qos.Class(pod) != v1.PodQOSBestEffort || toleratesMemoryPressure(pod)) {
		return nil
	}
	sorted := slices.Sorted(slices.Values(conditions))
	return &runtime.Rejection{Reason: Reason, Message: fmt.Sprintf("The node had condition: %v. ", sorted)}
}

// toleratesMemoryPressure: as the taint node.kubernetes.io/memory-pressure, of
// effect NoSchedule and without a value, would be tolerated.
func toleratesMemoryPressure(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool {
		if t.Effect != "" && t.Effect != v1.TaintEffectNoSchedule || t.Key != "" && t.Key != v1.TaintNodeMemoryPressure {
			return false
		}
		switch t.Operator {
		case v1.TolerationOpExists:
			return true
		case "", v1.TolerationOpEqual:
			return t.Key != "" && t.Value == ""
		default:
			return false
		}
	})
}
