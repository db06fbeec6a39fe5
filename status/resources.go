package status

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// resources returns what a container that has an instance was granted, and what
// it has (al-1, st-15): while it runs, what the runtime was last given; else,
// and where that is not known, what it was granted. The first is nil if nothing
// is requested, the second if there is neither request nor limit.
func resources(c *v1.Container, now *runtime.ContainerStatus, k kind) (allocated v1.ResourceList, has *v1.ResourceRequirements) {
	if k == kindEphemeral {
		return nil, nil // they have none
	}
	granted := &c.Resources
	has = &v1.ResourceRequirements{Requests: granted.Requests, Limits: granted.Limits}
	if now.State == runtime.ContainerRunning && now.Resources != nil {
		has.Requests, has.Limits = maps.Clone(granted.Requests), maps.Clone(granted.Limits)
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			// A request may leave no trace; a limit that is not there is not
			// in force.
			actual(&has.Requests, now.Resources.Requests, name, podspec.MinCPURequest)
			if !actual(&has.Limits, now.Resources.Limits, name, podspec.MinCPULimit) {
				delete(has.Limits, name)
			}
		}
	}
	if len(has.Requests) == 0 && len(has.Limits) == 0 {
		has = nil
	}
	return granted.Requests, has
}

// actual makes one figure of list what the runtime was given, unless that is
// too little of cpu to be told, and reports whether there is one.
func actual(list *v1.ResourceList, given v1.ResourceList, name v1.ResourceName, least int64) bool {
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

// podResources returns what the pod as a whole was granted and has; nil for a
// pod without pod-level resources.
func podResources(f *Facts) (allocated v1.ResourceList, has *v1.ResourceRequirements) {
	granted := f.Pod.Spec.Resources
	if granted == nil {
		return nil, nil
	}
	has = &v1.ResourceRequirements{Requests: granted.Requests, Limits: granted.Limits}
	if given := f.Resize.PodLevel; given != nil {
		has = &v1.ResourceRequirements{Requests: given.Requests, Limits: given.Limits}
	}
	return granted.Requests, has
}
