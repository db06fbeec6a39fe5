package eviction

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/qos"
)

// A Refusal is why a pod may not start on a node that is short of something.
type Refusal struct {
	Reason  string
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Admit says whether a pod may start on a node of which these conditions are true;
// nil: it may (ev-30 … ev-33). More memory is not taken by pods that get none
// they asked for, and less disk by nobody.
func Admit(pod *v1.Pod, conditions []v1.NodeConditionType) *Refusal {
	return Policy{}.Admit(pod, conditions)
}

// Admit is the function Admit, by the policy's own idea of who is critical.
func (p Policy) Admit(pod *v1.Pod, conditions []v1.NodeConditionType) *Refusal {
	if len(conditions) == 0 || p.critical(pod) {
		return nil
	}
	onlyMemory := !slices.ContainsFunc(conditions, func(c v1.NodeConditionType) bool { return c != v1.NodeMemoryPressure })
	if onlyMemory && (qos.Class(pod) != v1.PodQOSBestEffort || toleratesMemoryPressure(pod)) {
		return nil
	}
	sorted := slices.Sorted(slices.Values(conditions))
	return &Refusal{Reason: Reason, Message: fmt.Sprintf("The node had condition: %v. ", sorted)}
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
