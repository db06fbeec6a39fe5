package podworker

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// ReconcilePods takes pods whose object has another status and is otherwise unchanged
// (podsource.Sink). Usually this is the status that this node wrote, so the pods do
// not become due, except one whose readiness gates have changed, and one whose phase another
// writer has set to a terminal one. The Handler is notified if it has the method Reconcile; a change of
// a mirror pod is reported as one of its static pod.
func (l *Loop) ReconcilePods(pods []*v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pod := range pods {
		l.table.setDesired(pod)
		if !runtime.IsMirror(pod) {
			l.cfg.Workers.updateStatus(pod)
			continue
		}
		static := l.table.named(runtime.PodFullName(pod))
		if static == nil || !runtime.IsStatic(static) || !mirrorMatches(static, pod) {
			continue
		}
		l.cfg.Workers.reconcile(withStatusOf(static, pod))
	}
}

// withStatusOf returns a copy of a static pod with the status in its mirror pod.
func withStatusOf(static, mirror *v1.Pod) *v1.Pod {
	pod := static.DeepCopy()
	pod.Status = mirror.Status
	return pod
}

// updateStatus takes an object of a pod in which only the status has changed; see
// [Loop.ReconcilePods]. It has no effect if the pod has no worker.
func (w *Workers) updateStatus(pod *v1.Pod) {
	w.mu.Lock()
	p, ok := w.pods[pod.UID]
	if ok {
		w.stepLocked(p, statusUpdated{pod})
	}
	w.mu.Unlock()
	if ok {
		w.reconcile(pod)
	}
}

func (w *Workers) reconcile(pod *v1.Pod) {
	if r, ok := compose.As[Reconciler](w.cfg.Handler); ok {
		r.Reconcile(pod)
	}
}

// updateStatus takes the object of the pod with another status.
func (l lifecycle) updateStatus(pod *v1.Pod) (lifecycle, effect) {
	if l.pod == nil || l.restart != nil || l.state == Finished {
		return l, effect{}
	}
	changed := gatesChanged(l.pod, pod)
	l.pod = pod
	if l.state <= Syncing && (pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed) {
		return l.update(podUpdated{pod: pod})
	}
	return l, effect{wake: changed && l.state == Syncing}
}

// gatesChanged reports whether a condition of a readiness gate has changed.
func gatesChanged(old, pod *v1.Pod) bool {
	conditionStatus := func(p *v1.Pod, t v1.PodConditionType) v1.ConditionStatus {
		for _, c := range p.Status.Conditions {
			if c.Type == t {
				return c.Status
			}
		}
		return ""
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if conditionStatus(old, gate.ConditionType) != conditionStatus(pod, gate.ConditionType) {
			return true
		}
	}
	return false
}
