package pleg

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Relist lists the pods, inspects those that changed or were requested, and calls Handle with the
// events: those of removed pods first, then in the order of the UIDs. It returns when that is done.
//
// It is for callers with a loop of their own, and returns an error while Run or another Relist runs. If
// the list fails it returns that error, and the cache is unchanged. A failed inspection is not an error
// of Relist; Get returns it.
func (g *Generator) Relist(ctx context.Context) error {
	if !g.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer g.running.Store(false)

	info := g.list(ctx, g.beginRelist())
	g.inspectLoop(ctx, true)
	g.sortPending()
	g.deliver(ctx, g.ownFollower(), g.callHandle)
	info.Duration = time.Since(info.Start)
	g.report(info)
	return info.Err
}

// beginRelist begins the list of a Relist. It ends the pins whose unpin was called: the next Relist may be
// long after their end.
func (g *Generator) beginRelist() read {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.pods {
		if r.pins == 0 {
			r.pinnedUntil = time.Time{}
		}
	}
	g.settleDueLocked()
	return g.beginListLocked()
}

// beginListLocked begins a list, which the caller must make.
func (g *Generator) beginListLocked() read {
	g.listing = g.beginReadLocked()
	g.plan.listBegan(g.listing.at)
	return g.listing
}

// list makes the list by and applies the result. On error the records, the cache and the age of the list
// are unchanged (rule pleg-13).
func (g *Generator) list(ctx context.Context, by read) RelistInfo {
	listCtx, cancel := context.WithTimeout(ctx, g.cfg.Threshold)
	pods, err := g.cfg.Runtime.Pods(listCtx)
	cancel()

	g.mu.Lock()
	defer g.mu.Unlock()
	info := RelistInfo{Start: by.at}
	if !g.lastRelist.IsZero() {
		info.Interval = by.at.Sub(g.lastRelist)
	}
	g.lastRelist = by.at
	if err != nil {
		info.Err = fmt.Errorf("pleg: list pods: %w", err)
		g.failed = by
		g.plan.listFailed(time.Now(), g.cfg.Period)
	} else {
		info.Pods = len(pods)
		info.Changed = g.applyListLocked(pods, by)
		now := time.Now()
		g.confidence.listed(by.at, now, len(g.unannounced) == 0)
		g.plan.listEnded(by, now, g.cfg.Period, g.confidence.period())
	}
	g.listErr, g.listing = info.Err, read{}
	for _, r := range g.pods {
		g.forgetLocked(r)
	}
	if g.listDone != nil {
		close(g.listDone)
		g.listDone = nil
	}
	info.Duration = time.Since(by.at)
	return info
}

// applyListLocked compares a list with the records and returns the number of changed pods. It does not
// allocate for unchanged pods. Entries that are nil or have no UID are ignored.
func (g *Generator) applyListLocked(pods []*runtime.Pod, by read) (changed int) {
	apply := func(r *record, p *runtime.Pod) {
		before, since := r.current, r.confirmedBy
		if r.list(p, by) {
			changed++
			if p == nil { // for others the inspection finds the change
				g.checkEventsLocked(r, before, since, by)
			}
			g.settleLocked(r)
		} else {
			if r.unanswered.n != 0 {
				g.checkEventsLocked(r, before, since, by)
			}
			r.wakeLocked()
		}
	}
	for _, p := range pods {
		if p != nil && p.UID != "" {
			apply(g.recordLocked(p.UID), p)
		}
	}
	var gone []*record // sorted by UID, for a deterministic order of events
	for _, r := range g.pods {
		if r.listedBy.n != by.n {
			gone = append(gone, r)
		}
	}
	slices.SortFunc(gone, func(a, b *record) int { return cmp.Compare(a.uid, b.uid) })
	for _, r := range gone {
		apply(r, nil)
	}
	// Last: from here on, a pod without a record does not exist.
	if g.listed.n == 0 {
		signal(g.dueSignal) // inspections requested before the first list
	}
	g.listed = by
	return changed
}

// sortPending sorts the pods with pending events, so that the order does not depend on which inspection
// ended first.
func (g *Generator) sortPending() {
	g.mu.Lock()
	defer g.mu.Unlock()
	exists := func(uid types.UID) int {
		if r := g.pods[uid]; r == nil || r.current == nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(g.followers[0].pending, func(a, b types.UID) int {
		return cmp.Or(cmp.Compare(exists(a), exists(b)), cmp.Compare(a, b))
	})
}

// report completes info and calls the hook.
func (g *Generator) report(info RelistInfo) {
	g.mu.Lock()
	info.Inspected, info.Events, info.Unannounced = g.inspected, g.delivered, g.missed
	g.inspected, g.delivered, g.missed = 0, 0, 0
	info.Stale = g.staleLocked()
	info.Period, info.Confidence = g.confidence.period(), g.confidence.state
	g.mu.Unlock()
	if f := g.cfg.Hooks.Relisted; f != nil {
		f(info)
	}
}
