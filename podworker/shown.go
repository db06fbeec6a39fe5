package podworker

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Reconciler is a Handler, and a [Reporter], that cares for what others have
// made of a pod's status: pod.Status is what its record shows now. It is called
// at any time, beside the other methods, and must not block. Without it, such
// changes concern nobody.
type Reconciler interface {
	Reconcile(pod *v1.Pod)
}

// ReconcilePods takes pods of which a source shows another status than before,
// and nothing else that is new (podsource.Reconciler, sl-25). Mostly it is what
// this node wrote that comes back, so that no pod becomes due, but for one whose
// readiness gates were opened or closed, and one that somebody else has ended.
// The Handler is told, if it is a Reconciler; of a mirror pod, as of its static
// pod.
func (l *Loop) ReconcilePods(pods []*v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pod := range pods {
		l.wanted.set(pod)
		if !runtime.IsMirror(pod) {
			l.cfg.Workers.Shown(pod)
			continue
		}
		static := l.wanted.named(runtime.PodFullName(pod))
		if static == nil || !runtime.IsStatic(static) || !MirrorMatches(static, pod) {
			continue
		}
		static = static.DeepCopy()
		static.Status = pod.Status
		l.cfg.Workers.reconcile(static)
	}
}

// Shown says what status the record of a known pod shows now; see
// [Loop.ReconcilePods]. The rest of pod is as it was.
func (w *Workers) Shown(pod *v1.Pod) {
	w.mu.Lock()
	p, ok := w.pods[pod.UID]
	if ok {
		w.stepLocked(p, shown{pod})
	}
	w.mu.Unlock()
	if ok {
		w.reconcile(pod)
	}
}

func (w *Workers) reconcile(pod *v1.Pod) {
	if r, ok := w.cfg.Handler.(Reconciler); ok {
		r.Reconcile(pod)
	}
}

// Reconcile implements [Reconciler]: PipelineConfig.Status is told, if it is one.
func (p *Pipeline) Reconcile(pod *v1.Pod) {
	if r, ok := p.cfg.Status.(Reconciler); ok {
		r.Reconcile(p.granted(pod))
	}
}

// show takes another status of the pod.
func (l life) show(pod *v1.Pod) (life, effect) {
	if l.pod == nil || l.again || l.state == Finished {
		return l, effect{}
	}
	opened := gatesMoved(l.pod, pod)
	l.pod = pod
	if l.state <= Syncing && (pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed) {
		return l.want(wanted{pod: pod})
	}
	return l, effect{wake: opened && l.state == Syncing}
}

// gatesMoved reports whether a condition that a readiness gate asks for has
// changed.
func gatesMoved(old, pod *v1.Pod) bool {
	of := func(p *v1.Pod, t v1.PodConditionType) v1.ConditionStatus {
		for _, c := range p.Status.Conditions {
			if c.Type == t {
				return c.Status
			}
		}
		return ""
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if of(old, gate.ConditionType) != of(pod, gate.ConditionType) {
			return true
		}
	}
	return false
}
