package pleg

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A plan determines when the list loop acts next. The Generator's mu guards it.
type plan struct {
	next      time.Time // when a list is due; never while one is in progress
	listing   bool      // a list is in progress
	requested uint64    // a list with this number or a later one is requested
	wake      time.Time // when other work is due; zero: none

	// extension is how much longer than Config.Period the current period is. Healthy adds it
	// to the threshold.
	extension time.Duration
}

// never is a time that does not pass.
const never time.Duration = 1 << 62

// listBegan records that a list began at now.
func (p *plan) listBegan(now time.Time) {
	p.listing, p.next = true, now.Add(never)
}

// advance moves the next list forward to t, and reports whether it did.
func (p *plan) advance(t time.Time) bool {
	if !t.Before(p.next) {
		return false
	}
	if !p.listing {
		p.extension = max(0, p.extension-p.next.Sub(t))
	}
	p.next = t
	return true
}

// listEnded plans the list after the read by, which ended now. A list that was requested meanwhile is
// due at once; any other is not due before min, which is Config.Period, has passed (rule pleg-10).
func (p *plan) listEnded(by read, now time.Time, min, period time.Duration) {
	at := now.Add(period)
	if p.next.Before(at) {
		at = p.next
	}
	if plain := now.Add(min); at.Before(plain) {
		at = plain
	}
	p.extension = at.Sub(now) - min
	if p.requested > by.n {
		at, p.extension = now, 0
	}
	p.next, p.listing = at, false
}

// listFailed is listEnded for a failed list: it is retried after min, and extension stays that of the
// last successful one.
func (p *plan) listFailed(now time.Time, min time.Duration) {
	p.next, p.listing = now.Add(min), false
}

// listLoop lists at once and then a period after the end of each list, or earlier if requested. Between
// and during lists it runs the work that cannot wait for the next list, which may be minutes away.
func (g *Generator) listLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var lists sync.WaitGroup
	defer lists.Wait()
	var listed chan RelistInfo // result of the list in progress; nil: none is
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-g.planSignal:
		case info := <-listed:
			if ctx.Err() != nil {
				return
			}
			listed = nil
			g.report(info)
			if info.Err != nil && !failing {
				g.log.Warn("Failed to list pods; will retry", "retryIn", g.cfg.Period, "err", info.Err)
			}
			failing = info.Err != nil
		}
		if by, due := g.runDue(listed != nil); due {
			done := make(chan RelistInfo, 1)
			lists.Go(func() { done <- g.list(ctx, by) })
			listed = done
		}
		timer.Reset(g.untilNext(listed != nil))
	}
}

// untilNext returns the time until the list loop has to act. During a list the end of the list begins
// the next one.
func (g *Generator) untilNext(listing bool) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := never
	if !listing {
		next = time.Until(g.plan.next)
	}
	if w := g.plan.wake; !w.IsZero() {
		next = min(next, time.Until(w))
	}
	return max(0, next)
}

// runDue runs the work that is due. If a list is due and none is in progress, it begins it and returns true;
// the caller must make it.
func (g *Generator) runDue(listing bool) (by read, list bool) {
	g.mu.Lock()
	now := time.Now()
	list = !listing && !g.plan.next.After(now)
	missed := false
	if w := g.plan.wake; !w.IsZero() && !w.After(now) {
		g.plan.wake = time.Time{}
		missed = g.countMissedLocked(now)
		for _, r := range g.pods {
			switch {
			case !r.failing() || list:
			case r.retry.After(now):
				g.wakeLocked(r.retry)
			default:
				r.requested = g.reads + 1
			}
		}
		g.settleDueLocked() // also pods whose pin has ended
	}
	if list {
		by = g.beginListLocked()
	}
	period := g.confidence.period()
	g.mu.Unlock()
	if missed {
		g.log.Warn("Runtime did not announce a change; listing more often", "period", period)
	}
	return by, list
}

// settleDueLocked settles the pods that are due for inspection. Several may be due in one tick of the
// clock; they are queued in the order of their UIDs.
func (g *Generator) settleDueLocked() {
	var due []*record
	for _, r := range g.pods {
		if r.due() {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *record) int { return cmp.Compare(a.uid, b.uid) })
	for _, r := range due {
		g.settleLocked(r)
	}
}

// wakeLocked makes the list loop call runDue at t.
func (g *Generator) wakeLocked(t time.Time) {
	if w := g.plan.wake; w.IsZero() || t.Before(w) {
		g.plan.wake = t
		signal(g.planSignal)
	}
}

// listByLocked makes the next list due at t at the latest.
func (g *Generator) listByLocked(t time.Time) {
	if g.plan.advance(t) {
		signal(g.planSignal)
	}
}

// requestListLocked requests a list that has not begun yet.
func (g *Generator) requestListLocked() {
	g.plan.requested = g.reads + 1
	g.listByLocked(time.Now())
}
