package admission

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// NoContainersReason is why a pod without containers is refused. The kubelet has no
// word for it: no API server has such a pod.
const NoContainersReason = "NoContainers"

// Empty refuses a pod that has no containers; nil: it has some. To a runtime such a
// pod is one that has ended as soon as it is there, so that its sandbox would be made
// and unmade for ever.
func Empty(pod *v1.Pod) *runtime.Rejection {
	if len(pod.Spec.Containers) > 0 {
		return nil
	}
	return &runtime.Rejection{Reason: NoContainersReason, Message: "Pod has no containers: there is nothing to run"}
}
