package podworker

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// preemptLocked kills those who give way to p, and has p called for when all of
// them have finished: only then what they held is given back. Of two pods that
// want the same one out of the way the later waits for it; the other tries again
// after the ordinary delay.
//
// It returns those that did not end anyway.
func (w *Workers) preemptLocked(p *worker, victims []Victim) (preempted []PreemptInfo) {
	for _, v := range victims {
		victim, ok := w.pods[v.UID]
		if !ok || victim == p || victim.life.state == Finished {
			continue
		}
		if victim.life.state < Stopping && victim.life.pod != nil {
			preempted = append(preempted, PreemptInfo{Pod: victim.life.pod, By: p.uid, Victim: v})
		}
		if p.victims == nil {
			p.victims = map[types.UID]struct{}{}
		}
		p.victims[v.UID] = struct{}{}
		victim.preemptor = p
		w.stepLocked(victim, killed{v.Kill})
	}
	return preempted
}

// event is what is told of it.
func (i PreemptInfo) event() runtime.Event {
	return runtime.Event{
		Object: runtime.PodRef(i.Pod), Type: v1.EventTypeWarning, Reason: i.Victim.Kill.Ending.Reason, Message: i.Victim.Kill.Ending.Message,
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
