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
// It returns the events of those that did not end anyway.
func (w *Workers) preemptLocked(p *worker, victims []Victim) (events []runtime.Event) {
	for _, v := range victims {
		victim, ok := w.pods[v.UID]
		if !ok || victim == p || victim.life.state == Finished {
			continue
		}
		if victim.life.state < Stopping && victim.life.pod != nil {
			events = append(events, runtime.Event{
				Object: runtime.PodRef(victim.life.pod), Type: v1.EventTypeWarning,
				Reason: v.Kill.Ending.Reason, Message: v.Kill.Ending.Message,
			})
		}
		if p.victims == nil {
			p.victims = map[types.UID]struct{}{}
		}
		p.victims[v.UID] = struct{}{}
		victim.preemptor = p
		w.stepLocked(victim, killed{v.Kill})
	}
	return events
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
