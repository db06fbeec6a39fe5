package pleg

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// handleRuntimeEvent requests an inspection of the pod because of an event of the runtime, and
// records the event, which is compared with the result of the inspection.
func (g *Generator) handleRuntimeEvent(uid types.UID) {
	if uid == "" {
		return
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	r.lastEvent = runtimeEvent{g.reads + 1, now}
	g.confidence.eventReceived(now)
	if _, late := g.unannounced[uid]; late {
		delete(g.unannounced, uid)
		g.confidence.announced(now)
	} else if r.unanswered.n == 0 {
		r.unanswered = r.lastEvent
	}
	g.requestLocked(r)
}

// checkEventsLocked compares the result of the read by of r with the events of the runtime. before is
// the pod as previously inspected, and since the read that confirmed that state last.
func (g *Generator) checkEventsLocked(r *record, before *runtime.Pod, since, by read) {
	if r.err != nil {
		return
	}
	now := time.Now()
	changed := r.current != before && !equal(r.current, before)
	if changed && g.confidence.covers(since.at) {
		if r.lastEvent.n > since.n || now.Sub(r.early) <= max(eventDelay, g.cfg.Period) {
			g.confidence.announced(now)
		} else { // the event may be late
			g.unannounced[r.uid] = now
			g.wakeLocked(g.confidence.missedAt(now))
		}
		g.listByLocked(now.Add(max(settleDelay, g.cfg.Period)))
	}
	first, all := r.answeredBy(by)
	if changed {
		r.cause, r.early = first.at, time.Time{}
	} else if first.n != 0 && all {
		// No change was found. The event may have come before the change was visible,
		// as containerd's for a removed sandbox, and no other event will follow.
		r.early = now
		g.listByLocked(now.Add(g.cfg.Period))
	}
}

// countMissedLocked counts the changes that no event has announced in time, and reports whether the
// events were trusted until now. Then events are lost silently, and a list is requested at once to find
// other missed changes.
func (g *Generator) countMissedLocked(now time.Time) (lost bool) {
	for uid, at := range g.unannounced {
		if due := g.confidence.missedAt(at); due.After(now) {
			g.wakeLocked(due)
			continue
		}
		delete(g.unannounced, uid)
		g.missed++
		if g.confidence.missed(now) {
			lost = true
			g.requestListLocked()
		}
		if g.confidence.silent(now) && g.reopen != nil {
			g.reopen()
		}
	}
	return lost
}
