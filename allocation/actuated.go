package allocation

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// computeNames are the resources that can change while a container runs.
var computeNames = [...]v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU}

// Actuated returns pod, which has its allocated resources, with the actuated ones: those that the
// runtime reports for running containers. A request that it does not report counts as applied,
// because not all requests are visible; a limit that it does not report does not exist. podLevel
// are the applied pod-level resources; nil means the allocated ones. The arguments are not
// modified.
func Actuated(pod *v1.Pod, observed *runtime.PodStatus, podLevel *v1.ResourceRequirements) *v1.Pod {
	view := desiredResources(pod, true)
	if podLevel != nil && view.Pod != nil {
		view.Pod = new(withoutClaims(podLevel))
	}
	for c := range resizable(&pod.Spec, true) {
		now := running(observed, c.Name)
		if now == nil || now.Resources == nil {
			continue
		}
		own := v1.ResourceRequirements{Requests: maps.Clone(c.Resources.Requests), Limits: maps.Clone(c.Resources.Limits)}
		for _, name := range computeNames {
			if q, ok := now.Resources.Requests[name]; ok {
				put(&own.Requests, name, q)
			}
			if q, ok := now.Resources.Limits[name]; ok {
				put(&own.Limits, name, q)
			} else {
				delete(own.Limits, name)
			}
		}
		view.Containers[c.Name] = own
	}
	return view.Apply(pod)
}

func put(list *v1.ResourceList, name v1.ResourceName, q resource.Quantity) {
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = q
}

// running returns the running instance of a container, or nil.
func running(observed *runtime.PodStatus, name string) *runtime.ContainerStatus {
	if observed == nil {
		return nil
	}
	for i := range observed.Containers {
		if c := &observed.Containers[i]; c.Name == name && c.State == runtime.ContainerRunning {
			return c
		}
	}
	return nil
}

// InProgress reports whether a resize of pod, which has its allocated resources, is in progress: a
// running container, or the pod level, has other cpu or memory resources than allocated. podLevel
// is as in [Actuated].
//
// A container whose resources are unknown counts as resized, and so does the removal of a limit,
// which is not possible while the container runs.
func InProgress(pod *v1.Pod, observed *runtime.PodStatus, podLevel *v1.ResourceRequirements) bool {
	var whole v1.ResourceRequirements
	if pod.Spec.Resources != nil {
		whole = *pod.Spec.Resources
	}
	for c := range resizable(&pod.Spec, true) {
		now := running(observed, c.Name)
		if now != nil && now.Resources != nil && differs(&c.Resources, now.Resources, whole.Limits) {
			return true
		}
	}
	return pod.Spec.Resources != nil && podLevel != nil && differs(pod.Spec.Resources, podLevel, nil)
}

// differs reports whether allocated and actual resources differ for a cgroup. A container without
// a request and limit inherits the limit of its pod.
func differs(allocated, actual *v1.ResourceRequirements, inherited v1.ResourceList) bool {
	for _, name := range computeNames {
		if limit, ok := allocated.Limits[name]; ok {
			got, limited := actual.Limits[name]
			if !limited || !alike(name, limit, got, podspec.MinCPULimit) {
				return true
			}
		}
		// The removal of a request must become visible; an invisible request is
		// not compared.
		if got, ok := actual.Requests[name]; ok {
			expected := request(allocated, inherited, name)
			if !alike(name, expected, got, podspec.MinCPURequest) {
				return true
			}
		}
	}
	return false
}

// request returns the request, else the limit, else the inherited limit. A limit of zero does not
// count.
func request(r *v1.ResourceRequirements, inherited v1.ResourceList, name v1.ResourceName) resource.Quantity {
	if q, ok := r.Requests[name]; ok {
		return q
	}
	if q := r.Limits[name]; !q.IsZero() {
		return q
	}
	return inherited[name]
}

// alike reports whether two quantities are equal for a cgroup, whose minimum is least milli-CPUs.
func alike(name v1.ResourceName, a, b resource.Quantity, least int64) bool {
	if name == v1.ResourceCPU {
		return max(a.MilliValue(), least) == max(b.MilliValue(), least)
	}
	return a.Cmp(b) == 0
}
