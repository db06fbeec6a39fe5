package runtime

import (
	v1 "k8s.io/api/core/v1"
)

// PodRef returns the reference to pod that events carry.
func PodRef(pod *v1.Pod) v1.ObjectReference {
	return v1.ObjectReference{
		APIVersion:      "v1",
		Kind:            "Pod",
		Namespace:       pod.Namespace,
		Name:            pod.Name,
		UID:             pod.UID,
		ResourceVersion: pod.ResourceVersion,
	}
}

// ContainerRef returns the reference to one container of pod that events
// carry: the pod's, with a field path such as spec.initContainers{setup}
// (rt-81). A name the spec does not have gives the pod's own reference.
func ContainerRef(pod *v1.Pod, name string) v1.ObjectReference {
	ref := PodRef(pod)
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			ref.FieldPath = "spec.containers{" + name + "}"
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			ref.FieldPath = "spec.initContainers{" + name + "}"
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			ref.FieldPath = "spec.ephemeralContainers{" + name + "}"
		}
	}
	return ref
}
