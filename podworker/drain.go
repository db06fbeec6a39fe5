package podworker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// drainPeriod is how often Drain checks which pods are left.
const drainPeriod = 50 * time.Millisecond

// Drain terminates every pod, including those that only the runtime lists, each
// with its own grace period, and returns nil when all of them have been cleaned
// up. Run must be running, and Config.StatusCache must be up to date. The caller must have
// stopped the sources: a pod that is added during Drain may keep running.
//
// It returns an error with the number of pods that are left if no pod has finished
// for the longest grace period of those and 30 seconds more, or if runtime, which
// reports why the runtime is down, has returned an error for 30 seconds. If runtime
// is nil, only the first applies. It also returns an error if ctx is done. In these
// cases the pods continue to terminate. They may keep running if it returns
// [ErrRunReturned]. It may be called again. Safe for concurrent use.
func (l *Loop) Drain(ctx context.Context, runtime func() error) error {
	ticker := time.NewTicker(drainPeriod)
	defer ticker.Stop()
	killed := map[types.UID]bool{}
	var limit drainLimit
	for {
		left, grace, ended := l.settleAndTerminateAll(killed)
		switch {
		case left == 0:
			return nil
		case ended:
			return fmt.Errorf("podworker: drain: %d pods left: %w", left, ErrRunReturned)
		}
		var down error
		if runtime != nil {
			down = runtime()
		}
		now := time.Now()
		limit.observe(now, left, grace, down)
		if err := limit.exceeded(now); err != nil {
			return fmt.Errorf("podworker: drain: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("podworker: drain: %d pods left: %w", left, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// ErrRunReturned is in the chain of the error of [Loop.Drain] if Run of the Workers has returned: the pods that are
// left are not terminated.
var ErrRunReturned = errors.New("Run has returned")

// settleAndTerminateAll is terminateAll after settle: a pod that starts again has a
// worker, and is not between the old one and the new one.
func (l *Loop) settleAndTerminateAll(killed map[types.UID]bool) (left int, grace time.Duration, ended bool) {
	l.settling.Lock()
	defer l.settling.Unlock()
	l.settleLocked()
	return l.cfg.Workers.terminateAll(killed)
}

// terminateAll requests the termination of every pod and returns how many are not
// Finished yet or start again, the longest of their grace periods, and whether Run has returned. It adds
// to killed, and kills again only a pod that starts again. An orphan keeps the grace
// period that the runtime recorded.
func (w *Workers) terminateAll(killed map[types.UID]bool) (left int, grace time.Duration, ended bool) {
	for _, pod := range w.cfg.StatusCache.Pods() {
		if pod.MayRun() {
			w.killOrphan(pod) // has no effect if the pod has a worker
		}
	}
	var begin []types.UID
	w.mu.Lock()
	for uid, p := range w.pods {
		if p.lifecycle.state == Finished && p.lifecycle.restart == nil { // one that starts again is forgotten by settle
			continue
		}
		left++
		grace = max(grace, gracePeriod(p.lifecycle.pod, p.lifecycle.grace))
		terminating := p.lifecycle.state >= Stopping && p.lifecycle.restart == nil
		if !terminating || p.lifecycle.orphan == nil && !killed[uid] {
			killed[uid] = true
			begin = append(begin, uid)
		}
	}
	ended = w.ended
	w.mu.Unlock()
	for _, uid := range begin {
		w.Kill(uid, KillOptions{})
	}
	return left, grace, ended
}
