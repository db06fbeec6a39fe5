package pleg

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// RequestRelist asks for a look at one pod, and returns at once. A running Run
// inspects the pod as soon as there is a place; any number of requests made
// before that inspection begins are one (L-12), and one made while it is under
// way is served by another. Requests are never refused and never lost.
//
// It gives events only if something changed. Without a Run, the next Relist
// serves it. An empty uid is ignored.
func (g *Generator) RequestRelist(uid types.UID) {
	if uid == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.askLocked(g.recordLocked(uid))
}

// RequestReinspect is RequestRelist for a change that lists do not show, such
// as a resize: the pod is inspected even if it looks the same, and exactly one
// PodSync tells about it if no other event does (pleg-20, pleg-27).
func (g *Generator) RequestReinspect(uid types.UID) {
	if uid == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	r.sync = g.looks + 1
	g.askLocked(r)
}

// askLocked asks for a look at r that has not begun yet: what is under way may
// have missed what the caller knows of (pleg-29).
func (g *Generator) askLocked(r *record) {
	r.ask = g.looks + 1
	g.settleLocked(r)
}

// Pin says that the pod is being worked on, and that whoever does so asks for
// a look when he is done: until release is called, hints, requests and changes
// that lists show are collected, and read at once, instead of each on its own
// (L-12). What waits for the status of the pod (GetNewerThan) is read all the
// same. Work that takes longer than a Period delays nothing further: what was
// collected is read, once per Period.
//
// Holds of one pod add up. release must be called, and may be more than once.
func (g *Generator) Pin(uid types.UID) (unpin func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	if r.holds == 0 {
		r.heldUntil = time.Now().Add(g.cfg.Period)
	}
	r.holds++
	g.settleLocked(r)
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		r.holds--
		g.settleLocked(r)
	})
}
