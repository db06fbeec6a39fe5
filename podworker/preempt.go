package podworker

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// preempted is the kill of a pod that is preempted, in the kubelet's words
// (adm-10, ev-62).
var preempted = KillOptions{Evict: true, Ending: runtime.Termination{
	Failed: true, Reason: "Preempting", Message: "Preempted in order to admit critical pod",
	Disruption: "Pod was preempted by Kubelet to accommodate a critical pod.",
}}

// preemptLocked kills the pods of r.Preempt and makes p due when all of them have
// finished, which is when their resources are free. Pods that their source no
// longer specifies, and orphans, terminate already and are only waited for. If two
// pods preempt the same victim, the second waits for it; the first is retried
// after the ordinary delay.
//
// It returns the pods that did not terminate already.
func (w *Workers) preemptLocked(p *worker, r *runtime.Rejection) (killedPods []PreemptInfo) {
	for _, uid := range r.Preempt {
		victim, ok := w.pods[uid]
		if !ok || victim == p || victim.life.state == Finished {
			continue
		}
		if p.victims == nil {
			p.victims = map[types.UID]struct{}{}
		}
		p.victims[uid] = struct{}{}
		victim.preemptor = p
		if victim.life.removed || victim.life.pod == nil {
			continue
		}
		if victim.life.state < Stopping {
			killedPods = append(killedPods, PreemptInfo{Pod: victim.life.pod, By: p.uid, Reason: r.Reason})
		}
		w.stepLocked(victim, killed{preempted})
	}
	return killedPods
}

func (i PreemptInfo) event() runtime.Event {
	return runtime.Event{
		Object: runtime.PodRef(i.Pod), Type: v1.EventTypeWarning, Reason: preempted.Ending.Reason, Message: preempted.Ending.Message,
	}
}

// giveWayLocked tells who waits for p's end that it has come.
func (w *Workers) giveWayLocked(p *worker) {
	by := p.preemptor
	p.preemptor = nil
	if by == nil {
		return
	}
	if _, waits := by.victims[p.uid]; !waits {
		return // it was called for since
	}
	delete(by.victims, p.uid)
	if len(by.victims) == 0 && by.life.state == Syncing {
		w.wakeLocked(by) // there is room
	}
}
