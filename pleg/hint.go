package pleg

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// hint is a request that the runtime makes. It also counts as a word that was
// kept, or not, once it is seen what became of it.
func (g *Generator) hint(uid types.UID) {
	if uid == "" {
		return
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	r.last = mark{g.looks + 1, now}
	if r.asked.n == 0 {
		r.asked = r.last
	}
	g.confidence.hears(now)
	if _, late := g.suspects[uid]; late {
		delete(g.suspects, uid)
		g.confidence.announced()
	}
	g.askLocked(r)
}

// lookedLocked holds what a look by at r found against the hints there were;
// before is what was known of r until then, and since how fresh that was.
func (g *Generator) lookedLocked(r *record, before *runtime.Pod, since, by look) {
	if r.err != nil {
		return
	}
	changed := r.current != before && !same(r.current, before)
	if changed && g.confidence.judges(since.at) {
		if r.last.n > since.n {
			g.confidence.announced()
		} else {
			// The hint may be on its way: it has a period.
			now := time.Now()
			g.suspects[r.uid] = now
			g.wakeLocked(now.Add(g.cfg.Period))
		}
	}
	switch first, all := r.heeded(by); {
	case first.n == 0:
	case changed:
		r.led = first.at
	case all:
		// Nothing came of the hint. It may have come before what it is about
		// could be seen, and then no other will.
		g.soonLocked(time.Now().Add(g.cfg.Period))
	}
}

// judgeLocked counts the changes whose hints have not come in time, and reports
// whether the hints were trusted until now. Then it is known that they are lost
// silently, and what else was lost must be found: by a list, at once.
func (g *Generator) judgeLocked(now time.Time) (lost bool) {
	for uid, at := range g.suspects {
		if due := g.confidence.due(at); due.After(now) {
			g.wakeLocked(due)
			continue
		}
		delete(g.suspects, uid)
		g.unhinted++
		long := g.confidence.period > g.cfg.Period
		if g.confidence.missed() {
			lost = true
		}
		if long {
			g.wantListLocked()
		}
		if g.confidence.silent(now) && g.reopen != nil {
			g.reopen()
		}
	}
	return lost
}
