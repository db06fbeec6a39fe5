package fakenode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubeparts/kubeparts/admission"
)

// choose returns the first node that the pod fits, in addition to the pods on it, or "" and
// the message of kube-scheduler. It checks readiness, spec.unschedulable, taints, node
// selectors and required node affinity, host ports and resources; not pod affinity,
// topology spread or volumes.
func choose(pod *v1.Pod, nodes []*v1.Node, on map[string][]*v1.Pod) (name, message string) {
	reasons := map[string]int{}
	for _, n := range nodes {
		reason := mismatch(pod, n, on[n.Name])
		if reason == "" {
			return n.Name, ""
		}
		reasons[reason]++
	}
	var list []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		list = append(list, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	return "", fmt.Sprintf("0/%d nodes are available: %s.", len(nodes), strings.Join(list, ", "))
}

// mismatch returns why a pod does not fit a node; "" if it fits.
func mismatch(pod *v1.Pod, n *v1.Node, on []*v1.Pod) string {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	if !ready || n.DeletionTimestamp != nil {
		return "node(s) were not ready"
	}
	taints := slices.Clone(n.Spec.Taints)
	if n.Spec.Unschedulable {
		taints = append(taints, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	}
	for i := range taints {
		t := &taints[i]
		if t.Effect == v1.TaintEffectPreferNoSchedule || t.Key == v1.TaintNodeNotReady || tolerated(pod, t) {
			continue // readiness was checked above
		}
		if t.Key == v1.TaintNodeUnschedulable {
			return "node(s) were unschedulable"
		}
		return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.Key, t.Value)
	}
	reasons := admission.Check(pod, on, admission.Node{Name: n.Name, Labels: n.Labels, Allocatable: n.Status.Allocatable})
	switch {
	case len(reasons) == 0:
		return ""
	case reasons[0].InsufficientResource != nil:
		return fmt.Sprintf("Insufficient %s", reasons[0].InsufficientResource.Resource)
	}
	return fmt.Sprintf("node(s) didn't match: %s", reasons[0].Reason)
}

func tolerated(pod *v1.Pod, t *v1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(by v1.Toleration) bool {
		return by.ToleratesTaint(klog.Background(), t, true)
	})
}
