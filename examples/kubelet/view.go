package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

// A view answers questions about pods to parts that are made before those who know;
// nobody asks before the agent runs.
type view struct {
	workers  *podworker.Workers
	loop     *podworker.Loop
	statuses *status.Manager
}

// pod returns one that is wanted; else nil.
func (v *view) pod(uid types.UID) *v1.Pod {
	pod, _ := v.loop.Pod(uid)
	return pod
}

// wanted returns the pods that are wanted and not finished.
func (v *view) wanted() (pods []*v1.Pod) {
	for _, pod := range v.loop.Pods() {
		if v.loop.State(pod.UID) < podworker.Cleaning {
			pods = append(pods, pod)
		}
	}
	return pods
}

// running returns the pods of which something may run: to end another frees nothing.
func (v *view) running() (pods []*v1.Pod) {
	for _, s := range v.workers.States() {
		if s.Pod != nil && s.State < podworker.Cleaning {
			pods = append(pods, s.Pod)
		}
	}
	return pods
}

// leaving reports whether a pod is wanted no more, and stops.
func (v *view) leaving(uid types.UID) bool {
	s, known := v.workers.Known(uid)
	return known && s >= podworker.Stopping && s < podworker.Finished && v.pod(uid) == nil
}

// finished reports whether nothing of a pod runs, or will.
func (v *view) finished(uid types.UID) bool {
	s, known := v.workers.Known(uid)
	return known && s >= podworker.Cleaning
}
