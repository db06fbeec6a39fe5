package pleg

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// RequestRelist requests an inspection of one pod and does not block. Run inspects the pod as
// soon as one of Config.Parallel inspections is available. Requests before that inspection
// begins are merged; one during it causes another. No request is dropped.
//
// Events are delivered only if something changed. Without Run, the next Relist serves the
// request. An empty uid is ignored.
func (g *Generator) RequestRelist(uid types.UID) {
	if uid == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requestLocked(g.recordLocked(uid))
}

// RequestReinspect is RequestRelist for a change that lists do not show, such as a resize: the
// pod is inspected even if it is unchanged, and exactly one PodSync is delivered if no other
// event is.
func (g *Generator) RequestReinspect(uid types.UID) {
	if uid == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	r.syncRequested = g.reads + 1
	g.requestLocked(r)
}

// requestLocked requests an inspection of r that has not begun: one in progress may have missed
// the change. The first request of a pinned pod waits for Config.Period, even if the pin is older:
// further changes and unpin usually follow before, and then one inspection finds all of them.
func (g *Generator) requestLocked(r *record) {
	if r.pins > 0 && !r.due() {
		r.pinUntil(time.Now().Add(g.cfg.Period))
	}
	r.requested = g.reads + 1
	g.settleLocked(r)
}

// Pin reports that the caller is changing the pod and will request a relist afterwards. Until
// unpin is called, events of the runtime, requests and listed changes of the pod are collected;
// they are read once, 5 ms after unpin, instead of each on its own. A GetNewerThan for the
// pod is served all the same, and a change that was collected for Config.Period is read, so
// that there is at most one read per Period.
//
// Pins of the same pod nest. unpin must be called; further calls have no effect.
func (g *Generator) Pin(uid types.UID) (unpin func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	if r.pins == 0 {
		r.pinnedUntil = time.Now().Add(g.cfg.Period)
	}
	r.pins++
	g.settleLocked(r)
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if r.pins--; r.pins == 0 {
			r.pinnedUntil = time.Time{}
			if r.due() || r.inspecting {
				r.pinnedUntil = time.Now().Add(unpinDelay)
			}
		}
		g.settleLocked(r)
	})
}

// unpinDelay is how long a pin with collected changes lasts after unpin. The events of a change arrive
// shortly after the call that made it has returned: a pod that is read at once would be read again for
// each of them.
const unpinDelay = 5 * time.Millisecond
