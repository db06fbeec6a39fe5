package main

import (
	"context"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// remembered are the statuses that the next agent is to know of this one. Nil: the
// cluster has them.
type remembered struct{ *status.Snapshot }

// rememberStatuses returns where an agent without a cluster keeps what it said.
func (a *assembly) rememberStatuses() (*remembered, error) {
	if a.opts.cluster.on() {
		return nil, nil
	}
	snapshots, broken, err := status.OpenSnapshot(filepath.Join(a.opts.root, "statuses"))
	for _, err := range broken {
		a.logger.Warn("what was said of a pod is lost", "err", err)
	}
	return &remembered{snapshots}, err
}

// beside returns the sink that also remembers.
func (r *remembered) beside(sink status.StatusSink) status.StatusSink {
	if r == nil {
		return sink
	}
	return status.Tee(sink, r)
}

// earlier returns what an earlier agent said of a pod, but for its own word on it
// (evicted, refused): a pod that a person has put into a directory gets another
// chance with another agent, as a static pod has with another kubelet.
func (r *remembered) earlier(uid types.UID) (v1.PodStatus, bool) {
	if r == nil {
		return v1.PodStatus{}, false
	}
	s, ok := r.Status(uid)
	return s, ok && (s.Phase != v1.PodFailed || s.Reason == "")
}

// prune forgets the pods that are gone.
func (r *remembered) prune(keep func(types.UID) bool) error {
	if r == nil {
		return nil
	}
	return r.Prune(keep)
}

// mountsRecursively reports whether the runtime, as it is when the agent starts, can
// mount recursively read-only by its default handler.
func mountsRecursively(ctx context.Context, rt runtime.FeatureReporter) func(pod *v1.Pod) bool {
	has, err := rt.Features(ctx)
	can := err == nil && has.Handlers[""].RecursiveReadOnlyMounts
	return func(pod *v1.Pod) bool { return can && pod.Spec.RuntimeClassName == nil }
}
