package status

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// resources returns the allocated and the actual resources of a container that has an instance (rule
// st-15). The actual resources are those that the runtime was last given if the container runs and they
// are known, else the allocated ones. allocated is nil without requests, actual without requests and
// limits.
func resources(c *v1.Container, now *runtime.ContainerStatus, k kind) (allocated v1.ResourceList, actual *v1.ResourceRequirements) {
	if k == kindEphemeral {
		return nil, nil // they have no resources
	}
	spec := &c.Resources
	actual = &v1.ResourceRequirements{Requests: spec.Requests, Limits: spec.Limits}
	if now.State == runtime.ContainerRunning && now.Resources != nil {
		actual.Requests, actual.Limits = maps.Clone(spec.Requests), maps.Clone(spec.Limits)
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			// The runtime may not report a request; a limit that it does not
			// report is not in effect.
			setActual(&actual.Requests, now.Resources.Requests, name, podspec.MinCPURequest)
			if !setActual(&actual.Limits, now.Resources.Limits, name, podspec.MinCPULimit) {
				delete(actual.Limits, name)
			}
		}
	}
	if len(actual.Requests) == 0 && len(actual.Limits) == 0 {
		actual = nil
	}
	return spec.Requests, actual
}

// setActual sets a resource of list to the value that the runtime was given, and reports whether there is
// one. A CPU value of at most the runtime's minimum is not set, since the runtime may have raised it.
func setActual(list *v1.ResourceList, given v1.ResourceList, name v1.ResourceName, least int64) bool {
	q, ok := given[name]
	if !ok || name == v1.ResourceCPU && atMost(q, least) {
		return ok
	}
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = q
	return true
}

func atMost(q resource.Quantity, milli int64) bool { return q.MilliValue() <= milli }

// podResources returns the allocated and the actual resources of the pod as a whole; nil for a pod
// without pod-level resources.
func podResources(f *Facts) (allocated v1.ResourceList, actual *v1.ResourceRequirements) {
	spec := f.Pod.Spec.Resources
	if spec == nil {
		return nil, nil
	}
	actual = &v1.ResourceRequirements{Requests: spec.Requests, Limits: spec.Limits}
	if given := f.Resize.PodLevel; given != nil {
		actual = &v1.ResourceRequirements{Requests: given.Requests, Limits: given.Limits}
	}
	return spec.Requests, actual
}
