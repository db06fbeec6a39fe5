package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// equal reports whether two statuses are equal in the fields that the node owns (rule st-49). It
// ignores the conditions of other writers, resource claims, the times of conditions and their
// order.
//
// Fields that every status has are compared one by one: reflection takes fifty times as long, and
// equal is called for each inspection of each pod.
func equal(a, b *v1.PodStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration &&
		a.Phase == b.Phase && a.Reason == b.Reason && a.Message == b.Message &&
		a.QOSClass == b.QOSClass && a.Resize == b.Resize &&
		a.HostIP == b.HostIP && slices.Equal(a.HostIPs, b.HostIPs) &&
		a.PodIP == b.PodIP && slices.Equal(a.PodIPs, b.PodIPs) &&
		a.StartTime.Equal(b.StartTime) &&
		sameContainers(a.InitContainerStatuses, b.InitContainerStatuses) &&
		sameContainers(a.ContainerStatuses, b.ContainerStatuses) &&
		sameContainers(a.EphemeralContainerStatuses, b.EphemeralContainerStatuses) &&
		sameConditions(a.Conditions, b.Conditions) && sameConditions(b.Conditions, a.Conditions) &&
		sameMap(a.AllocatedResources, b.AllocatedResources) &&
		samePointer(a.Resources, b.Resources) &&
		sameSlice(a.VolumeHealth, b.VolumeHealth)
}

func sameContainers(a, b []v1.ContainerStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameContainer(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameContainer(a, b *v1.ContainerStatus) bool {
	return a.Name == b.Name && a.ContainerID == b.ContainerID && a.Image == b.Image && a.ImageID == b.ImageID &&
		a.RestartCount == b.RestartCount && a.Ready == b.Ready && sameValue(a.Started, b.Started) &&
		sameState(&a.State, &b.State) && sameState(&a.LastTerminationState, &b.LastTerminationState) &&
		sameValue(a.StopSignal, b.StopSignal) &&
		sameMap(a.AllocatedResources, b.AllocatedResources) &&
		samePointer(a.Resources, b.Resources) &&
		sameSlice(a.VolumeMounts, b.VolumeMounts) &&
		samePointer(a.User, b.User) &&
		sameSlice(a.AllocatedResourcesStatus, b.AllocatedResourcesStatus)
}

func sameState(a, b *v1.ContainerState) bool {
	if !sameValue(a.Waiting, b.Waiting) || (a.Running == nil) != (b.Running == nil) || (a.Terminated == nil) != (b.Terminated == nil) {
		return false
	}
	if a.Running != nil && !a.Running.StartedAt.Equal(&b.Running.StartedAt) {
		return false
	}
	if a.Terminated == nil {
		return true
	}
	x, y := *a.Terminated, *b.Terminated
	if !x.StartedAt.Equal(&y.StartedAt) || !x.FinishedAt.Equal(&y.FinishedAt) {
		return false
	}
	x.StartedAt, x.FinishedAt, y.StartedAt, y.FinishedAt = metav1.Time{}, metav1.Time{}, metav1.Time{}, metav1.Time{}
	return x == y
}

func sameValue[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// What few statuses have is left to reflection.

func samePointer[T any](a, b *T) bool {
	return a == b || equality.Semantic.DeepEqual(a, b)
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
}

func sameMap[K comparable, V any](a, b map[K]V) bool {
	return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
}

// sameConditions reports whether each owned condition in a is also in b.
func sameConditions(a, b []v1.PodCondition) bool {
	for i := range a {
		if !Owned(a[i].Type) && !ownDisruption(&a[i]) {
			continue
		}
		other := Condition(b, a[i].Type)
		if other == nil {
			return false
		}
		x, y := a[i], *other
		x.LastProbeTime, y.LastProbeTime = metav1.Time{}, metav1.Time{}
		x.LastTransitionTime, y.LastTransitionTime = metav1.Time{}, metav1.Time{}
		if x != y {
			return false
		}
	}
	return true
}
