package pleg

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// inspectLoop inspects the pods that are due, up to Parallel at a time, until
// ctx ends; with drain also until no pod is due. It returns after the
// inspections it began. A goroutine lives as long as there is something to
// inspect: none waits while there is nothing to do.
func (g *Generator) inspectLoop(ctx context.Context, drain bool) {
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{}, g.cfg.Parallel) // never blocks
	busy := 0
	for ctx.Err() == nil {
		if i, ok := g.nextInspection(ctx); ok {
			busy++
			wg.Go(func() {
				for ok := true; ok; { // the next from here: it is due now
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
		case <-g.dueEdge:
		case <-done:
			busy--
		}
	}
}

// An inspection is the full read of one pod.
type inspection struct {
	r    *record
	lane lane // whose place it takes
	look look
}

// nextInspection begins the inspection that comes next, if there is a place
// for it. Before the first list there is none: who has the status of a pod can
// rely on Pods to know what else there is.
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
	return inspection{r, in, g.lookLocked()}, true
}

// inspect reads one pod and takes in what it sees. Handle is not involved, so
// that whoever waits for the pod goes on even if Handle is slow.
func (g *Generator) inspect(ctx context.Context, i inspection) {
	podCtx, cancel := context.WithTimeout(ctx, g.cfg.InspectTimeout)
	status, err := g.cfg.Runtime.PodStatus(podCtx, i.r.uid)
	late := err != nil && podCtx.Err() != nil
	cancel()
	status, err = checked(i.r.uid, status, err)

	g.mu.Lock()
	i.r.inspecting = false
	g.queues.leave(i.lane)
	cut := err != nil && ctx.Err() != nil // Run ends: this says nothing of the pod
	first := err != nil && i.r.err == nil // of a row of failures
	if !cut {
		before, since := i.r.current, i.r.good
		i.r.late = late
		i.r.inspected(status, err, i.look)
		g.inspected++
		g.lookedLocked(i.r, before, since, i.look)
		if i.r.err != nil {
			g.retryLocked(i.r)
		}
	}
	g.settleLocked(i.r)
	g.mu.Unlock()

	if cut {
		return
	}
	if first {
		g.log.Warn("cannot inspect pod, trying again", "uid", i.r.uid, "err", err)
	}
	if f := g.cfg.Hooks.Inspected; f != nil {
		f(InspectInfo{UID: i.r.uid, Duration: time.Since(i.look.at), Err: err})
	}
}

// retryLocked has a pod that could not be inspected tried again after a Period.
// If a list comes by then, it sees to that.
func (g *Generator) retryLocked(r *record) {
	r.retry = time.Now().Add(g.cfg.Period)
	if r.retry.Before(g.plan.next) {
		g.wakeLocked(r.retry)
	}
}

// A lane is where a pod waits for its inspection. Lower ones go first.
type lane uint8

const (
	askedLane   lane = iota // somebody waits for it
	changedLane             // a list showed a change
	lateLane                // its last inspection timed out: it may hang again
	laneCount
)

// lanes is a set of them.
type lanes uint8

func (r *record) lane() lane {
	switch {
	case r.late:
		return lateLane
	case r.seen.n < r.ask:
		return askedLane
	default:
		return changedLane
	}
}

// queues hold the pods that are due, in the order in which they became so. A
// pod is at most once in each lane; one that it stands in but does not belong
// to any more is put right when it is popped.
type queues struct {
	waiting [laneCount][]types.UID
	busy    [laneCount]int // inspections under way
	places  int            // for all lanes together
	late    int            // of them, how many the late lane may take
}

// newQueues returns queues for that many inspections at a time. Half of them
// are out of reach of pods that may hang, if there is more than one.
func newQueues(places int) queues {
	return queues{places: places, late: (places + 1) / 2}
}

// push adds r, and reports whether it did not stand there already.
func (q *queues) push(r *record) bool {
	in := r.lane()
	if r.queued&(1<<in) != 0 {
		return false
	}
	r.queued |= 1 << in
	q.waiting[in] = append(q.waiting[in], r.uid)
	return true
}

// pop takes the next pod that is due, and a place for it.
func (q *queues) pop(pods map[types.UID]*record) (*record, lane, bool) {
	busy := 0
	for _, n := range q.busy {
		busy += n
	}
	if busy >= q.places {
		return nil, 0, false
	}
	for in := range laneCount {
		if in == lateLane && q.busy[in] >= q.late {
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
				continue // answered meanwhile, or under way
			}
			if _, held := r.rests(); held {
				continue // pushed again when that is over
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

// leave gives back the place of an inspection.
func (q *queues) leave(in lane) { q.busy[in]-- }
