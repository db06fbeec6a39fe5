package admission

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// ForNode returns the function allocation.Config.Admit of a node: a new pod must
// pass [Check], a resize must pass [Fit], and the first failure is reported.
//
// A pod for which only resources are insufficient may be preceded by others, which the rejection
// lists in Preempt: pods that terminate, if the pod fits without them (the
// scheduler assigns the resources of a deleted pod at once; a kubelet runs both,
// rules sl-19 and sl-23); else, for a critical pod, those that it preempts
// (rule adm-10).
//
// The function node returns the current state of the node. The function
// terminating reports whether a pod is terminating and no source specifies it any
// more. Both are called while a pod is admitted, on its goroutine, must not block
// and must not call the allocation.Manager.
func ForNode(node func() Node, terminating func(uid types.UID) bool) func(context.Context, allocation.Request) *runtime.Rejection {
	return func(_ context.Context, req allocation.Request) *runtime.Rejection {
		if req.Resize {
			return first(Fit(req.Pod, req.Others, node()))
		}
		return admit(req.Pod, req.Others, node(), terminating)
	}
}

func admit(pod *v1.Pod, others []*v1.Pod, node Node, terminating func(types.UID) bool) *runtime.Rejection {
	failures := Check(pod, others, node)
	rejection := first(failures)
	if rejection == nil || slices.ContainsFunc(failures, func(f Failure) bool { return f.InsufficientResource == nil }) {
		return rejection
	}
	var remaining, terminated []*v1.Pod
	for _, other := range others {
		if terminating(other.UID) {
			terminated = append(terminated, other)
		} else {
			remaining = append(remaining, other)
		}
	}
	if len(terminated) > 0 && len(Check(pod, remaining, node)) == 0 {
		rejection.Preempt = uids(terminated)
		return rejection
	}
	if !podspec.IsCritical(pod) {
		return rejection
	}
	// A pod without annotations is restored from its allocation checkpoint
	// (allocation.Request): it may be critical as well.
	candidates := slices.DeleteFunc(slices.Clone(others), func(p *v1.Pod) bool { return len(p.Annotations) == 0 })
	preempted, err := victims(pod, candidates, failures)
	if err != nil {
		return &runtime.Rejection{
			Reason:  unexpectedError,
			Message: fmt.Sprintf("Unexpected error while attempting to recover from admission failure: %v", err),
			Err:     err,
		}
	}
	rejection.Preempt = uids(preempted)
	return rejection
}

// first returns the failure that is reported.
func first(failures []Failure) *runtime.Rejection {
	for _, f := range failures {
		return &f.Rejection
	}
	return nil
}

func uids(pods []*v1.Pod) (uids []types.UID) {
	for _, pod := range pods {
		uids = append(uids, pod.UID)
	}
	return uids
}
