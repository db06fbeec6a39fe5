package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Default returns a copy of pod with the default values that the API server sets, as documented in
// core/v1. pod is not changed. Default is idempotent.
//
// It does not set the values that admission plugins add (priority, tolerations, a service account and
// its token volume, an overhead), nor the namespace, the UID and the node, which the caller determines.
// resizePolicy stays empty, which means NotRequired.
func Default(pod *v1.Pod) *v1.Pod {
	pod = defaultAllButPodResources(pod)
	defaultPodResources(pod)
	return pod
}

func defaultAllButPodResources(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	spec := &pod.Spec

	setDefault(&spec.RestartPolicy, v1.RestartPolicyAlways)
	setDefault(&spec.DNSPolicy, v1.DNSClusterFirst)
	setDefault(&spec.SchedulerName, v1.DefaultSchedulerName)
	setPointer(&spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	setPointer(&spec.EnableServiceLinks, v1.DefaultEnableServiceLinks)
	setPointer(&spec.SecurityContext, v1.PodSecurityContext{})

	// Two names of one field; both are always shown.
	setDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	setDefault(&spec.DeprecatedServiceAccount, spec.ServiceAccountName)

	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i], spec.HostNetwork)
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i], spec.HostNetwork)
	}
	for i := range spec.EphemeralContainers {
		c := v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		// Ephemeral containers have neither ports nor resources of their own.
		defaultContainer(&c, false)
		spec.EphemeralContainers[i].EphemeralContainerCommon = v1.EphemeralContainerCommon(c)
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
	return pod
}

// defaultPodResources sets the missing requests of the pod as a whole, if it has limits: the sum of the requests
// of its containers, else those limits. It must be called after the containers are defaulted.
func defaultPodResources(pod *v1.Pod) {
	res := pod.Spec.Resources
	if res == nil || len(res.Limits) == 0 {
		return
	}
	fill := func(from v1.ResourceList, skip func(v1.ResourceName) bool) {
		for name, q := range from {
			if _, set := res.Requests[name]; set || skip(name) {
				continue
			}
			if res.Requests == nil {
				res.Requests = make(v1.ResourceList)
			}
			res.Requests[name] = q.DeepCopy()
		}
	}
	fill(resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{}), func(n v1.ResourceName) bool {
		return !resource.IsSupportedPodLevelResource(n) || podspec.IsHugePages(n)
	})
	fill(res.Limits, func(n v1.ResourceName) bool { return !resource.IsSupportedPodLevelResource(n) })
}

// setDefault sets *p to value if it is the zero value.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// setPointer makes *p point to value if it is nil.
func setPointer[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
