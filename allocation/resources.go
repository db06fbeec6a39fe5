package allocation

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// podResources are the resources of a pod's containers and of the pod level: desired, allocated or
// actuated ones. The zero value has none.
type podResources struct {
	// Containers by name: regular ones, sidecars and, if requested, all init containers.
	Containers map[string]v1.ResourceRequirements `json:"containers,omitempty"`

	// Pod has the pod-level resources. Nil if there are none.
	Pod *v1.ResourceRequirements `json:"pod,omitempty"`
}

// desiredResources returns the resources in the spec of pod. allInit includes all init containers, not only
// sidecars. The result shares its lists with the pod.
func desiredResources(pod *v1.Pod, allInit bool) podResources {
	r := podResources{Containers: make(map[string]v1.ResourceRequirements, len(pod.Spec.Containers))}
	for c := range resizable(&pod.Spec, allInit) {
		r.Containers[c.Name] = withoutClaims(&c.Resources)
	}
	if pod.Spec.Resources != nil {
		r.Pod = new(withoutClaims(pod.Spec.Resources))
	}
	return r
}

// areOf reports whether r equals the resources in the spec of pod. It does not allocate.
func (r podResources) areOf(pod *v1.Pod, allInit bool) bool {
	count := 0
	for c := range resizable(&pod.Spec, allInit) {
		own, ok := r.Containers[c.Name]
		if !ok || !EqualResources(&own, &c.Resources) {
			return false
		}
		count++
	}
	return count == len(r.Containers) && samePodLevel(r.Pod, pod.Spec.Resources)
}

// withoutClaims returns the requests and limits of r. Claims cannot be resized.
func withoutClaims(r *v1.ResourceRequirements) v1.ResourceRequirements {
	return v1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
}

// resizable yields the containers that can be resized, init containers first, in the order of the
// spec.
func resizable(spec *v1.PodSpec, allInit bool) func(yield func(*v1.Container) bool) {
	return func(yield func(*v1.Container) bool) {
		for i := range spec.InitContainers {
			if c := &spec.InitContainers[i]; (allInit || podspec.IsSidecar(c)) && !yield(c) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i]) {
				return
			}
		}
	}
}

// Apply returns pod with these resources in its spec: pod itself if they are equal, otherwise a
// copy that shares everything else. Containers that are not listed keep their resources.
func (r podResources) Apply(pod *v1.Pod) *v1.Pod {
	var out *v1.Pod
	changed := func() *v1.PodSpec {
		if out == nil {
			out = new(*pod)
		}
		return &out.Spec
	}
	if list, ok := r.applyTo(pod.Spec.InitContainers); ok {
		changed().InitContainers = list
	}
	if list, ok := r.applyTo(pod.Spec.Containers); ok {
		changed().Containers = list
	}
	if !samePodLevel(r.Pod, pod.Spec.Resources) {
		changed().Resources = nil
		if r.Pod != nil {
			out.Spec.Resources = new(*r.Pod)
			if pod.Spec.Resources != nil {
				out.Spec.Resources.Claims = pod.Spec.Resources.Claims
			}
		}
	}
	if out == nil {
		return pod
	}
	return out
}

// applyTo returns containers with these resources, and whether they differ.
func (r podResources) applyTo(containers []v1.Container) (list []v1.Container, changed bool) {
	for i := range containers {
		own, listed := r.Containers[containers[i].Name]
		if !listed || EqualResources(&own, &containers[i].Resources) {
			continue
		}
		if !changed {
			list, changed = append([]v1.Container(nil), containers...), true
		}
		list[i].Resources.Requests, list[i].Resources.Limits = own.Requests, own.Limits
	}
	return list, changed
}

// Equal reports whether r and other are equal; quantities are compared by value.
func (r podResources) Equal(other podResources) bool {
	return samePodLevel(r.Pod, other.Pod) &&
		maps.EqualFunc(r.Containers, other.Containers, func(a, b v1.ResourceRequirements) bool { return EqualResources(&a, &b) })
}

func samePodLevel(a, b *v1.ResourceRequirements) bool {
	if a == nil || b == nil {
		return a == b
	}
	return EqualResources(a, b)
}

// EqualResources reports whether requests and limits are equal; quantities are compared by value.
func EqualResources(a, b *v1.ResourceRequirements) bool {
	return sameList(a.Requests, b.Requests) && sameList(a.Limits, b.Limits)
}

func sameList(a, b v1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// clone returns a deep copy.
func (r podResources) clone() podResources {
	c := podResources{Containers: make(map[string]v1.ResourceRequirements, len(r.Containers))}
	for name, own := range r.Containers {
		c.Containers[name] = *own.DeepCopy()
	}
	if r.Pod != nil {
		c.Pod = r.Pod.DeepCopy()
	}
	return c
}
