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

// Relist is one look at everything: it lists the pods, inspects those that
// changed or were asked for, and calls Handle with what is new, the pods that
// are gone first and then in the order of their UIDs. It returns when that is
// done.
//
// It is for those who bring their own loop; while Run runs it is refused. The
// error says why the list failed, which changes nothing of what is known (a
// pod that could not be inspected is no error here, but one of Get).
func (g *Generator) Relist(ctx context.Context) error {
	if !g.driven.CompareAndSwap(false, true) {
		return errDriven
	}
	defer g.driven.Store(false)

	info := g.list(ctx)
	g.inspectLoop(ctx, true)
	g.sortNews()
	g.deliver(ctx, g.own(), g.tell)
	info.Duration = time.Since(info.Start)
	g.report(info)
	return info.Err
}

// list lists the pods and takes in what it sees. On error nothing is touched:
// not the records, not the cache, not the age of the list (pleg-13).
func (g *Generator) list(ctx context.Context) RelistInfo {
	g.mu.Lock()
	by := g.lookLocked()
	info := RelistInfo{Start: by.at}
	if !g.relists.IsZero() {
		info.Interval = by.at.Sub(g.relists)
	}
	g.relists, g.listing = by.at, by
	g.plan.begins(by.at)
	g.mu.Unlock()
	if f := g.cfg.Hooks.Relisting; f != nil {
		f(by.at)
	}

	listCtx, cancel := context.WithTimeout(ctx, g.cfg.Threshold)
	pods, err := g.cfg.Runtime.Pods(listCtx)
	cancel()

	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		info.Err = fmt.Errorf("pleg: list pods: %w", err)
		g.failed = by
		g.plan.failed(time.Now(), g.cfg.Period)
	} else {
		info.Pods = len(pods)
		info.Changed = g.takeInLocked(pods, by)
		now := time.Now()
		g.confidence.listed(now, len(g.suspects) == 0)
		g.plan.ended(by, now, g.cfg.Period, g.confidence.period)
	}
	g.listErr, g.listing = info.Err, look{}
	for _, r := range g.pods {
		g.forgetLocked(r)
	}
	if g.ends != nil {
		close(g.ends)
		g.ends = nil
	}
	info.Duration = time.Since(by.at)
	return info
}

// takeInLocked compares a list with the records, and returns how many pods had
// news. Where nothing changed it allocates nothing. Entries that are nil or
// have no UID cannot be told apart and are left out.
func (g *Generator) takeInLocked(pods []*runtime.Pod, by look) (changed int) {
	takeIn := func(r *record, p *runtime.Pod) {
		before, since := r.current, r.good
		if r.list(p, by) {
			changed++
			if p == nil { // else the inspection tells what changed
				g.lookedLocked(r, before, since, by)
			}
			g.settleLocked(r)
		} else {
			r.wakeLocked()
		}
	}
	for _, p := range pods {
		if p != nil && p.UID != "" {
			takeIn(g.recordLocked(p.UID), p)
		}
	}
	var gone []*record // of several, by UID: what is told of them should not depend on luck
	for _, r := range g.pods {
		if r.listedBy.n == by.n {
			continue
		}
		if r.current == nil && r.listed == nil {
			takeIn(r, nil) // it is known already
			continue
		}
		gone = append(gone, r)
	}
	slices.SortFunc(gone, func(a, b *record) int { return cmp.Compare(a.uid, b.uid) })
	for _, r := range gone {
		takeIn(r, nil)
	}
	// Last: from here on a pod without a record is known not to be there
	// (pleg-22).
	if g.listed.n == 0 {
		edge(g.dueEdge) // what was asked for before the first list
	}
	g.listed = by
	return changed
}

// sortNews puts what is to be delivered into an order that does not depend on
// which inspection ended first.
func (g *Generator) sortNews() {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := func(uid types.UID) int {
		if r := g.pods[uid]; r == nil || r.current == nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(g.followers[0].news, func(a, b types.UID) int {
		return cmp.Or(cmp.Compare(left(a), left(b)), cmp.Compare(a, b))
	})
}

// report completes info and tells the hook.
func (g *Generator) report(info RelistInfo) {
	g.mu.Lock()
	info.Inspected, info.Events, info.Unhinted = g.inspected, g.delivered, g.unhinted
	g.inspected, g.delivered, g.unhinted = 0, 0, 0
	info.Stale = g.staleLocked()
	info.Period, info.Hints = g.confidence.period, g.confidence.state
	g.mu.Unlock()
	if f := g.cfg.Hooks.Relisted; f != nil {
		f(info)
	}
}
