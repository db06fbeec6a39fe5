package client

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// share replaces the parts of a pod that was just read by those of its previous version, if they are
// equal. Both are in memory for as long as the pod runs: pod workers have the version whose spec they
// run, and most later versions differ in their status only.
func share(pod, was *v1.Pod) {
	if was == nil || was == pod {
		return
	}
	if reflect.DeepEqual(&pod.Spec, &was.Spec) {
		pod.Spec = was.Spec
	}
	to, from := &pod.ObjectMeta, &was.ObjectMeta
	if reflect.DeepEqual(to.Labels, from.Labels) {
		to.Labels = from.Labels
	}
	if reflect.DeepEqual(to.Annotations, from.Annotations) {
		to.Annotations = from.Annotations
	}
	if reflect.DeepEqual(to.OwnerReferences, from.OwnerReferences) {
		to.OwnerReferences = from.OwnerReferences
	}
	if to.Name == from.Name && to.Namespace == from.Namespace && to.UID == from.UID && to.GenerateName == from.GenerateName {
		to.Name, to.Namespace, to.UID, to.GenerateName = from.Name, from.Namespace, from.UID, from.GenerateName // the memory of the texts
	}
}
