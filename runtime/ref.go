package runtime

import (
	v1 "k8s.io/api/core/v1"
)

// PodRef returns the object reference of pod, for events.
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

// ContainerRef returns the object reference of a container of pod, for events: that of the pod with a
// field path such as spec.initContainers{setup}. If the pod has no such container, it is that of the
// pod.
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
