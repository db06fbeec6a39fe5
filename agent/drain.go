package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/podworker"
)

// Bounds of Drain.
const (
	syncTimeout  = 5 * time.Second  // for the sources and the first relist
	listTimeout  = 30 * time.Second // for a relist after the sources have stopped
	flushTimeout = 5 * time.Second  // for the delivery of the last statuses
	drainPoll    = 50 * time.Millisecond
	listRetry    = time.Second // between two attempts to list the pods
)

// Drain stops the sources, terminates every pod that has a worker or that the
// runtime lists, each with its own grace period, and delivers the last statuses. It
// returns nil when all pods have terminated and were cleaned up. Run must be running, or be
// called soon; afterwards it has no pods to run, and no source specifies new ones.
//
// Sources that have not synced, and a runtime that has not listed its pods, have 5
// seconds to do so. Drain returns an error with the number of pods that are left, if
// the runtime is down for 30 seconds, or if no pod has terminated for the longest
// grace period and 30 seconds more; and an error if the last statuses are not
// delivered within 5 seconds.
//
// If ctx is done Drain returns an error that wraps the cause. After an error the pods
// that are left continue to terminate while Run runs. It returns podworker.ErrRunReturned
// if Run returns first. It may be called again.
func (a *Agent) Drain(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-a.ended:
			cancel(podworker.ErrRunReturned)
		case <-ctx.Done():
		}
	}()
	if err := a.drainPods(ctx); err != nil {
		return fmt.Errorf("agent: drain: %w", err)
	}
	flush, stop := context.WithTimeout(ctx, flushTimeout)
	defer stop()
	if err := a.statuses.Flush(flush); err != nil {
		return fmt.Errorf("agent: drain: deliver the last statuses: %w", err)
	}
	return nil
}

// StopSources stops the sources and returns nil when they have returned: from then
// on the set of desired pods does not change. It returns an error if ctx is done
// first. It is for a caller that terminates the pods itself; Drain includes it.
func (a *Agent) StopSources(ctx context.Context) error {
	a.sourcesMu.Lock()
	a.draining = true
	if a.stopSources != nil {
		a.stopSources()
	}
	a.sourcesMu.Unlock()
	select {
	case <-a.sourcesStopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the sources: %w", context.Cause(ctx))
	}
}

func (a *Agent) drainPods(ctx context.Context) error {
	select {
	case <-a.running:
	case <-ctx.Done():
		return fmt.Errorf("wait for Run: %w", context.Cause(ctx))
	}
	a.awaitPods(ctx)
	if err := a.StopSources(ctx); err != nil {
		return err
	}
	if err := a.listPods(ctx); err != nil {
		return fmt.Errorf("at least %d pods left: list the pods of the runtime: %w", a.unfinished(), err)
	}
	return a.loop.Drain(ctx, a.runtimeDown)
}

// awaitPods waits, for syncTimeout at most, until the sources have specified their pods
// and the runtime has listed its own: a pod whose spec is known is terminated with its
// hooks and grace period.
func (a *Agent) awaitPods(ctx context.Context) {
	late := time.NewTimer(syncTimeout)
	defer late.Stop()
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	for !a.table.Synced() || a.changes.Healthy() != nil {
		select {
		case <-poll.C:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// listPods waits for a relist that begins now or later. It returns the error of the last
// one if none succeeds within listTimeout.
func (a *Agent) listPods(ctx context.Context) error {
	began := time.Now()
	late, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	var last error // of a relist, not of late
	for {
		_, err := a.changes.PodsNewerThan(late, began)
		if err == nil {
			return nil
		}
		if last == nil || late.Err() == nil {
			last = err
		}
		select {
		case <-time.After(listRetry):
		case <-late.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("%w (%v)", context.Cause(ctx), last)
			}
			return fmt.Errorf("no success within %v: %w", listTimeout, last)
		}
	}
}

// unfinished returns the number of pods that have not terminated, of those that have a
// worker.
func (a *Agent) unfinished() (n int) {
	for _, s := range a.table.States() {
		if s.State != podworker.Finished {
			n++
		}
	}
	return n
}

// runtimeDown returns why the runtime is down; nil if it is not.
func (a *Agent) runtimeDown() error {
	if a.health != nil {
		return a.health.Runtime()
	}
	return a.changes.Healthy()
}
