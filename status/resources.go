package status

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// resources returns the allocated and the actual resources of a container that has an instance (rule
// st-15). The actual resources are those that the runtime was last given if the container runs and they
// are known, else the allocated ones. allocated is nil without requests; actual is empty without requests
// and limits, and nil for ephemeral containers.
func resources(pod *v1.Pod, c *v1.Container, now *runtime.ContainerStatus, k kind) (allocated v1.ResourceList, actual *v1.ResourceRequirements) {
	if k == kindEphemeral {
		return nil, nil // they have no resources
	}
	spec := &c.Resources
	actual = &v1.ResourceRequirements{Requests: spec.Requests, Limits: spec.Limits}
	if now.State == runtime.ContainerRunning && now.Resources != nil {
		actual.Requests, actual.Limits = maps.Clone(spec.Requests), maps.Clone(spec.Limits)
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			// The runtime may not report a request; a limit that it does not report is not in
			// effect. One of the pod as a whole is not the container's, though it is given to it.
			setActual(&actual.Requests, now.Resources.Requests, name, podspec.MinCPURequest)
			if !podspec.Inherits(pod, c, name) && !setActual(&actual.Limits, now.Resources.Limits, name, podspec.MinCPULimit) {
				delete(actual.Limits, name)
			}
		}
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

func atMost(q apiresource.Quantity, milli int64) bool { return q.MilliValue() <= milli }

// podResources returns the allocated and the actual resources of the pod as a whole: those of its
// containers together unless the pod has pod-level resources. allocated is nil without requests; actual is
// empty without requests and limits.
func podResources(f *Facts) (allocated v1.ResourceList, actual *v1.ResourceRequirements) {
	if hasNoResources(f.Pod) && f.Resize.PodLevel == nil {
		return nil, new(v1.ResourceRequirements)
	}
	if allocated = resource.PodRequests(f.Pod, resource.PodResourcesOptions{}); len(allocated) == 0 {
		allocated = nil
	}
	switch spec, given := f.Pod.Spec.Resources, f.Resize.PodLevel; {
	case given != nil:
		return allocated, &v1.ResourceRequirements{Requests: given.Requests, Limits: given.Limits}
	case spec != nil:
		return allocated, &v1.ResourceRequirements{Requests: spec.Requests, Limits: spec.Limits}
	}
	actual = &v1.ResourceRequirements{Requests: allocated}
	if limits := resource.PodLimits(f.Pod, resource.PodResourcesOptions{}); len(limits) > 0 {
		actual.Limits = limits
	}
	return allocated, actual
}

// hasNoResources reports whether the spec has no requests and limits, whose sums need not be computed then.
func hasNoResources(pod *v1.Pod) bool {
	if pod.Spec.Resources != nil || len(pod.Spec.Overhead) > 0 {
		return false
	}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if r := &containers[i].Resources; len(r.Requests) > 0 || len(r.Limits) > 0 {
				return false
			}
		}
	}
	return true
}
