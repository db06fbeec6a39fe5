package admission

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
)

// An InsufficientResource is a resource whose available amount is less than the pod requests. Amounts
// are in its base unit: milli-CPUs, bytes, or a count; Used is the sum of the requests of other pods.
type InsufficientResource struct {
	Resource                  v1.ResourceName
	Requested, Used, Capacity int64
}

// Missing returns the missing amount.
func (r InsufficientResource) Missing() int64 { return r.Used + r.Requested - r.Capacity }

func (r InsufficientResource) failure() Failure {
	f := failure("OutOf"+string(r.Resource), "Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
		r.Resource, r.Requested, r.Used, r.Capacity)
	f.InsufficientResource = &r
	return f
}

// Fit returns the resources that are insufficient for pod in addition to the others: the number of
// pods first, then by name.
func Fit(pod *v1.Pod, others []*v1.Pod, node Node) (failures []Failure) {
	if node.Allocatable == nil {
		return nil
	}
	requests := amounts(pod)
	used, count := map[v1.ResourceName]int64{}, int64(0)
	for _, other := range others {
		if other.UID == pod.UID {
			continue
		}
		count++
		for name, q := range requestsOf(other) {
			used[name] += amount(name, q)
		}
	}
	if limit, ok := node.Allocatable[v1.ResourcePods]; ok && count+1 > limit.Value() {
		failures = append(failures, InsufficientResource{v1.ResourcePods, 1, count, limit.Value()}.failure())
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		capacity, ok := node.Allocatable[name]
		if !ok && extended(name) {
			continue
		}
		r := InsufficientResource{name, requests[name], used[name], amount(name, capacity)}
		if r.Requested > 0 && r.Missing() > 0 {
			failures = append(failures, r.failure())
		}
	}
	return failures
}

// amounts returns the requests of a pod in base units, without those that its ResourceClaim
// provides.
func amounts(pod *v1.Pod) map[v1.ResourceName]int64 {
	n := map[v1.ResourceName]int64{}
	for name, q := range requestsOf(pod) {
		n[name] = amount(name, q)
	}
	return n
}

// requestsOf returns the requests of a pod, without those that its ResourceClaim provides. The
// caller must not modify the result.
func requestsOf(pod *v1.Pod) v1.ResourceList {
	pod = withoutClaimed(pod)
	if spec := &pod.Spec; len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil {
		return spec.Containers[0].Resources.Requests // the sum: each admission adds those of all pods
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// withoutClaimed returns the pod without the requests for extended resources that the scheduler
// has mapped to a ResourceClaim of the pod: no part of them is allocated from the node (rule adm-4).
func withoutClaimed(pod *v1.Pod) *v1.Pod {
	s := pod.Status.ExtendedResourceClaimStatus
	if s == nil || len(s.RequestMappings) == 0 {
		return pod
	}
	type request struct{ container, resource string }
	claimed := map[request]bool{}
	for _, m := range s.RequestMappings {
		claimed[request{m.ContainerName, m.ResourceName}] = true
	}
	strip := func(containers []v1.Container) []v1.Container {
		containers = slices.Clone(containers)
		for i, c := range containers {
			requests := maps.Clone(c.Resources.Requests)
			maps.DeleteFunc(requests, func(name v1.ResourceName, _ apiresource.Quantity) bool {
				return claimable(name) && claimed[request{c.Name, string(name)}]
			})
			containers[i].Resources.Requests = requests
		}
		return containers
	}
	stripped := *pod
	stripped.Spec.Containers = strip(pod.Spec.Containers)
	stripped.Spec.InitContainers = strip(pod.Spec.InitContainers)
	return &stripped
}

// deviceClassPrefix begins the name of the extended resource that each DeviceClass has implicitly.
const deviceClassPrefix = "deviceclass.resource.kubernetes.io/"

// claimable reports whether a ResourceClaim can provide a resource.
func claimable(name v1.ResourceName) bool {
	return extended(name) || strings.HasPrefix(string(name), deviceClassPrefix)
}

// extended reports whether a resource is an extended resource.
func extended(name v1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
