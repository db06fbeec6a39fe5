package fakenode

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// effectiveNode returns the part of a node that placement depends on. A node that is not
// ready has the taint that the node lifecycle controller adds, with which most test clusters
// do not run.
func effectiveNode(n *v1.Node) *v1.Node {
	out := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
		Spec:       v1.NodeSpec{Unschedulable: n.Spec.Unschedulable || n.DeletionTimestamp != nil, Taints: n.Spec.Taints},
		Status:     v1.NodeStatus{Allocatable: n.Status.Allocatable},
	}
	if !isReady(n) && !slices.ContainsFunc(n.Spec.Taints, isNotReady) {
		out.Spec.Taints = append(slices.Clone(n.Spec.Taints), v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
	}
	return out
}

// isNotReady reports whether a taint marks a node that is not ready.
func isNotReady(t v1.Taint) bool {
	return t.Key == v1.TaintNodeNotReady && t.Effect == v1.TaintEffectNoSchedule
}

// isOpen reports whether a node is ready and has no taint of a node that is not.
func isOpen(n *v1.Node) bool { return isReady(n) && !slices.ContainsFunc(n.Spec.Taints, isNotReady) }
