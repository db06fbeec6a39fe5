package eviction

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// Admit returns nil if a pod may start on a node with the given conditions. Under memory
// pressure alone, BestEffort pods that do not tolerate the memory-pressure taint are
// rejected; under disk or PID pressure all pods are. Critical pods are admitted.
func (p Policy) Admit(pod *v1.Pod, conditions []v1.NodeConditionType) *runtime.Rejection {
	if len(conditions) == 0 || p.critical(pod) {
		return nil
	}
	onlyMemory := !slices.ContainsFunc(conditions, func(c v1.NodeConditionType) bool { return c != v1.NodeMemoryPressure })
	if onlyMemory && (podspec.QOSClass(pod) != v1.PodQOSBestEffort || podspec.Tolerates(pod, memoryPressure)) {
		return nil
	}
	sorted := slices.Sorted(slices.Values(conditions))
	return &runtime.Rejection{Reason: reasonEvicted, Message: fmt.Sprintf("The node had condition: %v. ", sorted)}
}

// memoryPressure is the taint of nodes under memory pressure.
var memoryPressure = v1.Taint{Key: v1.TaintNodeMemoryPressure, Effect: v1.TaintEffectNoSchedule}
