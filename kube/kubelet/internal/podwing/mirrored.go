package podwing

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

// mirrorPatience limits the wait for the mirror pods: while the API server is unavailable,
// static pods must not wait for it.
const mirrorPatience = 3 * time.Second

// mirrorPods are the mirror pods of the node. *client.Pods implements it.
type mirrorPods interface {
	Synced() bool
	Mirror(namespace, name string) *v1.Pod
}

// mirrored is a source of static pods with the statuses of their mirror pods at the start of
// the process. Without them, the readiness of a container that was taken over from a kubelet
// would be false until its next probe.
type mirrored struct {
	Source podsource.PodSource
	Pods   mirrorPods
	Exists func(types.UID) bool // the node has a pod of this UID
}

// Run implements podsource.PodSource. The first set waits for the mirror pods, for
// mirrorPatience at most, if it has a pod whose readiness depends on them.
func (m mirrored) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	var statuses map[types.UID]v1.PodStatus // nil: before the first set
	return m.Source.Run(ctx, func(pods []*v1.Pod) {
		if statuses == nil {
			if slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return hasReadiness(pod) && m.Exists(pod.UID) }) {
				m.await(ctx)
			}
			statuses = m.statuses(pods)
		}
		set(withStatuses(pods, statuses))
	})
}

// await waits until the mirror pods were read.
func (m mirrored) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mirrorPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !m.Pods.Synced() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// statuses returns the statuses of the mirror pods of existing pods.
func (m mirrored) statuses(pods []*v1.Pod) map[types.UID]v1.PodStatus {
	found := map[types.UID]v1.PodStatus{}
	for _, pod := range pods {
		if !m.Exists(pod.UID) {
			continue
		}
		if s, ok := earlierStatus(pod, m.Pods.Mirror(pod.Namespace, pod.Name)); ok {
			found[pod.UID] = s
		}
	}
	return found
}

// earlierStatus returns the status that a static pod continues. That of a pod which may not
// restart is not used, since a static pod may run again after a restart of the machine.
func earlierStatus(pod, mirror *v1.Pod) (v1.PodStatus, bool) {
	if mirror == nil || pod.Spec.RestartPolicy != v1.RestartPolicyAlways ||
		mirror.Status.Phase != v1.PodRunning && mirror.Status.Phase != v1.PodPending {
		return v1.PodStatus{}, false
	}
	// A kubelet annotates the mirror pod with the UID.
	made := mirror.Annotations[v1.MirrorPodAnnotationKey]
	return mirror.Status, made == string(pod.UID) || made == pod.Annotations[runtime.ConfigHashAnnotation]
}

// hasReadiness reports whether the readiness of a container depends on a probe.
func hasReadiness(pod *v1.Pod) bool {
	probed := func(c v1.Container) bool { return c.ReadinessProbe != nil || c.StartupProbe != nil }
	return slices.ContainsFunc(pod.Spec.Containers, probed) || slices.ContainsFunc(pod.Spec.InitContainers, probed)
}

// withStatuses returns the pods with their statuses, and removes the statuses of other pods:
// a pod that is removed and added again does not continue the earlier one.
func withStatuses(pods []*v1.Pod, statuses map[types.UID]v1.PodStatus) []*v1.Pod {
	desired := map[types.UID]bool{}
	pods = slices.Clone(pods)
	for i, pod := range pods {
		desired[pod.UID] = true
		if s, ok := statuses[pod.UID]; ok {
			pods[i] = new(*pod)
			pods[i].Status = s
		}
	}
	maps.DeleteFunc(statuses, func(uid types.UID, _ v1.PodStatus) bool { return !desired[uid] })
	return pods
}
