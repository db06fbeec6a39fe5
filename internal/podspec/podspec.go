// Package podspec computes properties of pods from their specs: containers, quality of
// service class, priority, whether a container restarts, and amounts of CPU and huge pages.
package podspec

import (
	"iter"

	v1 "k8s.io/api/core/v1"
)

// Containers yields the init containers of a pod and then its containers, in the
// order of the spec. It yields no ephemeral containers.
func Containers(pod *v1.Pod) iter.Seq[*v1.Container] {
	return func(yield func(*v1.Container) bool) {
		for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// LongRunning yields the containers that run as long as the pod: its sidecars and then its regular
// containers. A checkpoint of the pod has them, in this order.
func LongRunning(pod *v1.Pod) iter.Seq[*v1.Container] {
	return func(yield func(*v1.Container) bool) {
		regular := len(pod.Spec.InitContainers)
		i := 0
		for c := range Containers(pod) {
			if (i >= regular || IsSidecar(c)) && !yield(c) {
				return
			}
			i++
		}
	}
}

// AllContainers yields what Containers yields and then the ephemeral containers.
func AllContainers(pod *v1.Pod) iter.Seq[*v1.Container] {
	return func(yield func(*v1.Container) bool) {
		for c := range Containers(pod) {
			if !yield(c) {
				return
			}
		}
		for i := range pod.Spec.EphemeralContainers {
			if !yield((*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// Container returns the container of any kind with the name; nil if there is none.
func Container(pod *v1.Pod, name string) *v1.Container {
	for c := range AllContainers(pod) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// RunsToCompletion reports whether the name is of an init container that terminates
// before the next container starts, which may then reuse its resources.
func RunsToCompletion(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return !IsSidecar(c)
		}
	}
	return false
}
