package pleg

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// inspectLoop inspects the pods that are due, up to Parallel at a time, until ctx is done or, if drain
// is set, until no pod is due. It returns after the inspections that it began. Goroutines return when
// no pod is due.
func (g *Generator) inspectLoop(ctx context.Context, drain bool) {
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{}, g.cfg.Parallel) // never blocks
	busy := 0
	for ctx.Err() == nil {
		if i, ok := g.nextInspection(ctx); ok {
			busy++
			wg.Go(func() {
				for ok := true; ok; { // also the next pod that is due
					g.inspect(ctx, i)
					i, ok = g.nextInspection(ctx)
				}
				done <- struct{}{}
			})
			continue
		}
		if drain && busy == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-g.dueSignal:
		case <-done:
			busy--
		}
	}
}

// An inspection is a PodStatus call for one pod.
type inspection struct {
	r         *record
	lane      lane // whose slot it occupies
	read      read
	announced bool // an announced status is allowed
}

// nextInspection begins the next inspection if a slot is free. It begins none before the first list, so
// that Pods is valid once GetNewerThan has returned a status.
func (g *Generator) nextInspection(ctx context.Context) (inspection, bool) {
	if ctx.Err() != nil {
		return inspection{}, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listed.n == 0 {
		return inspection{}, false
	}
	r, in, ok := g.queues.pop(g.pods)
	if !ok {
		return inspection{}, false
	}
	r.inspecting = true
	if r.pins > 0 {
		r.pinnedUntil = time.Now().Add(g.cfg.Period)
	}
	return inspection{r, in, g.beginReadLocked(), g.announcedLocked(r)}, true
}

// announcedLocked reports whether the status of an event suffices for the due inspection of r. It does not
// for a difference to a list, for a change that has no event, nor for a pod that could not be inspected. While a
// list is in progress either may be the older one, and after a missed change events are not trusted.
func (g *Generator) announcedLocked(r *record) bool {
	return g.confidence.state == ConfidenceTrusted && g.listing.n == 0 &&
		r.err == nil && r.syncRequested == 0 && r.listedBy.n <= r.readBy.n
}

// inspect reads one pod and records the result. It does not call Handle, so that a slow Handle does not
// delay callers of GetNewerThan.
func (g *Generator) inspect(ctx context.Context, i inspection) {
	podCtx, cancel := context.WithTimeout(ctx, g.cfg.InspectTimeout)
	if i.announced {
		podCtx = runtime.AllowAnnounced(podCtx, true)
	}
	status, err := g.cfg.Runtime.PodStatus(podCtx, i.r.uid)
	timedOut := err != nil && podCtx.Err() != nil
	cancel()
	status, err = checked(i.r.uid, status, err)

	g.mu.Lock()
	i.r.inspecting = false
	g.queues.leave(i.lane)
	canceled := err != nil && ctx.Err() != nil // Run returns; not a failure of the pod
	first := err != nil && i.r.err == nil      // of consecutive failures
	if !canceled {
		before, since := i.r.current, i.r.confirmedBy
		i.r.timedOut = timedOut
		i.r.inspected(status, err, i.read)
		g.inspected++
		g.checkEventsLocked(i.r, before, since, i.read)
		if i.r.err != nil {
			g.retryLocked(i.r)
		}
	}
	g.settleLocked(i.r)
	g.mu.Unlock()

	if canceled {
		return
	}
	if first {
		g.log.Warn("Failed to inspect pod; will retry", "podUID", i.r.uid, "retryIn", g.cfg.Period, "err", err)
	}
	if f := g.cfg.Hooks.Inspected; f != nil {
		f(InspectInfo{UID: i.r.uid, Duration: time.Since(i.read.at), Err: err})
	}
}

// retryLocked schedules another inspection of a pod after a Period. A list before that requests it
// earlier.
func (g *Generator) retryLocked(r *record) {
	r.retry = time.Now().Add(g.cfg.Period)
	if r.retry.Before(g.plan.next) {
		g.wakeLocked(r.retry)
	}
}

// A lane is a queue of pods that are due for inspection. Lower lanes are served first.
type lane uint8

const (
	requestedLane lane = iota // an inspection was requested
	changedLane               // a list contained a change
	timedOutLane              // the last inspection timed out and may hang again
	laneCount
)

// lanes is a set of lanes.
type lanes uint8

func (r *record) lane() lane {
	switch {
	case r.timedOut:
		return timedOutLane
	case r.readBy.n < r.requested:
		return requestedLane
	default:
		return changedLane
	}
}

// queues contains the pods that are due, in the order in which they became due. A pod is at most once
// in each lane; if its lane has changed, pop moves it.
type queues struct {
	waiting       [laneCount][]types.UID
	busy          [laneCount]int // inspections in progress
	slots         int            // of all lanes
	timedOutSlots int            // how many of them timedOutLane may occupy
}

// newQueues returns queues for that many concurrent inspections. If there is more than one, pods whose
// last inspection timed out occupy at most half of them.
func newQueues(slots int) queues {
	return queues{slots: slots, timedOutSlots: (slots + 1) / 2}
}

// push adds r to its lane and reports whether it was not in it.
func (q *queues) push(r *record) bool {
	in := r.lane()
	if r.queued&(1<<in) != 0 {
		return false
	}
	r.queued |= 1 << in
	q.waiting[in] = append(q.waiting[in], r.uid)
	return true
}

// pop removes the next pod that is due and occupies a slot for it.
func (q *queues) pop(pods map[types.UID]*record) (*record, lane, bool) {
	busy := 0
	for _, n := range q.busy {
		busy += n
	}
	if busy >= q.slots {
		return nil, 0, false
	}
	for in := range laneCount {
		if in == timedOutLane && q.busy[in] >= q.timedOutSlots {
			break
		}
		for len(q.waiting[in]) > 0 {
			r := pods[q.waiting[in][0]]
			q.waiting[in] = q.waiting[in][1:]
			if r == nil {
				continue // forgotten
			}
			r.queued &^= 1 << in
			if !r.due() {
				continue // no longer due, or in progress
			}
			if _, pinned := r.pinned(); pinned {
				continue // pushed again when the pin ends
			}
			if r.lane() > in {
				q.push(r)
				continue
			}
			q.busy[in]++
			return r, in, true
		}
	}
	return nil, 0, false
}

// leave releases the slot of an inspection.
func (q *queues) leave(in lane) { q.busy[in]-- }
