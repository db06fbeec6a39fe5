package pleg

import (
	"context"
	"time"
)

// A plan says what the list loop does next, and when. The Generator's mu
// guards it.
type plan struct {
	next   time.Time // a list is due; never while one is under way
	under  bool      // one is under way
	wanted uint64    // a list of this number or a later one is asked for
	wake   time.Time // something else is due; zero: nothing

	// granted is how much longer than Config.Period the wait for next is, for
	// which nobody is to blame: Healthy adds it to the threshold.
	granted time.Duration
}

// begins notes that a list began at now.
func (p *plan) begins(now time.Time) {
	p.under, p.next = true, now.Add(1<<62)
}

// soon moves the next list forward to t, and reports whether it did.
func (p *plan) soon(t time.Time) bool {
	if !t.Before(p.next) {
		return false
	}
	if !p.under {
		p.granted = max(0, p.granted-p.next.Sub(t))
	}
	p.next = t
	return true
}

// ended plans the next list after one that began as look by and ended now. One
// that was asked for meanwhile comes at once, any other not before min, the
// plain period, has passed (pleg-10).
func (p *plan) ended(by look, now time.Time, min, period time.Duration) {
	at := now.Add(period)
	if p.next.Before(at) {
		at = p.next
	}
	if plain := now.Add(min); at.Before(plain) {
		at = plain
	}
	p.granted = at.Sub(now) - min
	if p.wanted > by.n {
		at, p.granted = now, 0
	}
	p.next, p.under = at, false
}

// failed is ended for a list that was no good: it is tried again after min, and
// granted stays, which is that of the last good one.
func (p *plan) failed(now time.Time, min time.Duration) {
	p.next, p.under = now.Add(min), false
}

// listLoop lists at once, and then a period after each list has ended
// (pleg-10), or earlier if somebody asks. In between it does what cannot wait
// for a list that is minutes away.
func (g *Generator) listLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-g.planEdge:
		}
		if g.between() {
			info := g.list(ctx)
			if ctx.Err() != nil {
				return
			}
			g.report(info)
			if info.Err != nil && !failing {
				g.log.Warn("cannot list pods, trying again", "err", info.Err)
			}
			failing = info.Err != nil
		}
		timer.Reset(g.untilNext())
	}
}

// untilNext returns how long there is nothing to do for the list loop.
func (g *Generator) untilNext() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.plan.next
	if w := g.plan.wake; !w.IsZero() && w.Before(at) {
		at = w
	}
	return max(0, time.Until(at))
}

// between does what is due beside lists, and reports whether a list is due.
func (g *Generator) between() bool {
	g.mu.Lock()
	now := time.Now()
	list := !g.plan.next.After(now)
	missed := false
	if w := g.plan.wake; !w.IsZero() && !w.After(now) {
		g.plan.wake = time.Time{}
		missed = g.judgeLocked(now)
		for _, r := range g.pods {
			switch {
			case !r.failing() || list:
			case r.retry.After(now):
				g.wakeLocked(r.retry)
			default:
				r.ask = g.looks + 1
			}
			g.settleLocked(r) // also what was held, and is not any more
		}
	}
	period := g.confidence.period
	g.mu.Unlock()
	if missed {
		g.log.Warn("a pod changed and the runtime gave no hint, listing more often", "period", period)
	}
	return list
}

// wakeLocked makes the list loop look again at t.
func (g *Generator) wakeLocked(t time.Time) {
	if w := g.plan.wake; w.IsZero() || t.Before(w) {
		g.plan.wake = t
		edge(g.planEdge)
	}
}

// soonLocked makes the next list come at t at the latest.
func (g *Generator) soonLocked(t time.Time) {
	if g.plan.soon(t) {
		edge(g.planEdge)
	}
}

// wantListLocked asks for a list that has not begun yet.
func (g *Generator) wantListLocked() {
	g.plan.wanted = g.looks + 1
	g.soonLocked(time.Now())
}
