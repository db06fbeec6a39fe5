package podworker

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// preempted is the kill of a preempted pod, with the kubelet's reason and messages
// (rule adm-10).
var preempted = KillOptions{Evict: true, Termination: runtime.Termination{
	Failed: true, Reason: "Preempting", Message: "Preempted in order to admit critical pod",
	Disruption: "Pod was preempted by Kubelet to accommodate a critical pod.",
}}

// preemptLocked kills the pods of r.Preempt and makes p due when all of them have finished,
// which is when their resources are free. Pods that no source specifies, and orphans, are
// terminating already and are only waited for. If two pods preempt the same victim, the
// second waits for it; the first is retried after the ordinary delay.
//
// It returns the pods that were not terminating already.
func (w *Workers) preemptLocked(p *worker, r *runtime.Rejection) (killedPods []preemption) {
	for _, uid := range r.Preempt {
		victim, ok := w.pods[uid]
		if !ok || victim == p || victim.lifecycle.state == Finished {
			continue
		}
		if p.victims == nil {
			p.victims = map[types.UID]struct{}{}
		}
		p.victims[uid] = struct{}{}
		victim.preemptor = p
		if victim.lifecycle.end == removed || victim.lifecycle.pod == nil {
			continue
		}
		if victim.lifecycle.state < Stopping {
			killedPods = append(killedPods, preemption{victim.lifecycle.pod, p.uid, r.Reason})
		}
		w.stepLocked(victim, killed{preempted})
	}
	return killedPods
}

// A preemption is a pod that is killed to admit another, and the reason of that one's rejection.
type preemption struct {
	pod    *v1.Pod
	by     types.UID
	reason string
}

func (p preemption) event() runtime.Event {
	return runtime.Event{
		Object: runtime.PodRef(p.pod), Type: v1.EventTypeWarning, Reason: preempted.Termination.Reason, Message: preempted.Termination.Message,
	}
}

// wakePreemptorLocked removes p, which has finished, from the victims of its preemptor, and
// wakes that one if it was the last.
func (w *Workers) wakePreemptorLocked(p *worker) {
	by := p.preemptor
	p.preemptor = nil
	if by == nil {
		return
	}
	if _, waits := by.victims[p.uid]; !waits {
		return // a call of the preemptor has reset its victims
	}
	delete(by.victims, p.uid)
	if len(by.victims) == 0 && by.lifecycle.state == Syncing {
		w.wakeLocked(by)
	}
}
