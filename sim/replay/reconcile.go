package replay

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/status"
)

// The input of Reconcile is the recorded status of a pod, with masked values:
// if the recorded parts agree with the status of the replayed agent, that status replaces
// it. Otherwise the agent would write its status again.
func (r pacedReporter) Reconcile(pod *v1.Pod) {
	if own, ok := r.published(pod.UID); ok && r.w.model == nil && r.w.confirms(&pod.Status, &own) {
		pod = pod.DeepCopy()
		pod.Status = confirmed(&pod.Status, own)
	}
	r.Reporter.Reconcile(pod)
}

// published returns the status of a pod that the replayed agent wrote last, or that it
// computed if it has not written one.
func (r pacedReporter) published(uid types.UID) (v1.PodStatus, bool) {
	r.w.mu.Lock()
	written := r.w.written[uid]
	r.w.mu.Unlock()
	if written != nil {
		return *written.DeepCopy(), true
	}
	if m, ok := compose.As[*status.Manager](r.Reporter); ok {
		return m.Status(uid)
	}
	return v1.PodStatus{}, false
}

// confirms reports whether a recorded status of a pod is equal to the replayed agent's.
func (w *world) confirms(recorded, own *v1.PodStatus) bool {
	return difference("", ownedTree(recorded), ownedTree(own), w.tolerance) == ""
}

// confirmed returns own with the conditions in recorded that other writers have set.
func confirmed(recorded *v1.PodStatus, own v1.PodStatus) v1.PodStatus {
	own.Conditions = slices.DeleteFunc(own.Conditions, func(c v1.PodCondition) bool { return !compares(c) })
	for _, c := range recorded.Conditions {
		if !compares(c) {
			own.Conditions = append(own.Conditions, c)
		}
	}
	return own
}

// ownedTree returns the part of a status that package status compares.
func ownedTree(s *v1.PodStatus) any {
	out := *s
	out.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c v1.PodCondition) bool { return !compares(c) })
	slices.SortFunc(out.Conditions, func(a, b v1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	out.NominatedNodeName, out.ExtendedResourceClaimStatus = "", nil
	return statusTree(&out)
}

// compares reports whether package status compares a condition.
func compares(c v1.PodCondition) bool {
	return status.Owned(c.Type) || c.Type == v1.DisruptionTarget && c.Reason == v1.PodReasonTerminationByKubelet
}
