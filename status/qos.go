package status

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/qos"
)

// QOSClass returns the quality of service class of a pod by its spec (st-46),
// whatever its status says: Guaranteed if cpu and memory are limited everywhere
// and what is requested is the limit, BestEffort if neither is requested or
// limited anywhere, else Burstable. Requests and limits of the pod as a whole
// decide alone, if it has them. A request left out counts as the limit.
func QOSClass(pod *v1.Pod) v1.PodQOSClass { return qos.Class(pod) }
