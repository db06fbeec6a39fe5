package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/prober"
)

// Run runs the agent until ctx is done and returns nil when every part has
// returned; the pods keep running. It returns the error of a part that fails,
// after it has stopped the others. It must be called once: a second call returns
// an error.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.once.Enter("agent: Agent"); err != nil {
		return err
	}
	defer close(a.ended)
	if a.health != nil {
		a.health.First(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range a.parts() {
		group.Go(func() error { return run(ctx) })
	}
	close(a.running)
	return group.Wait()
}

// parts returns the Run of every part.
func (a *Agent) parts() []func(context.Context) error {
	parts := []func(context.Context) error{a.changes.Run, a.statuses.Run, a.loop.Run, a.runSources}
	if a.health != nil {
		parts = append(parts, a.health.Run)
	}
	if a.probes != nil {
		parts = append(parts, a.probes.Run, a.containersToProber, a.resultsToLoop)
	}
	return parts
}

// runSources runs the sources until ctx is done, or Drain stops them.
func (a *Agent) runSources(ctx context.Context) error {
	defer close(a.sourcesStopped)
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	group.Go(func() error {
		defer stop()
		select {
		case <-a.draining:
		case <-ctx.Done():
		}
		return nil
	})
	group.Go(func() error { return a.merge.Run(ctx) })
	return group.Wait()
}

// containersToProber has a new instance of a container probed at once.
func (a *Agent) containersToProber(ctx context.Context) error {
	return a.changes.Follow(ctx, func(e pleg.Event) { a.probes.Look(e.UID) })
}

// resultsToLoop has a pod synced when the result of a probe changes, and its status
// reported at once if SyncPod or KillPod is in progress.
func (a *Agent) resultsToLoop(ctx context.Context) error {
	return a.probes.Follow(ctx, func(c prober.Change) {
		if c.Matters() {
			a.inbox.PodChanged(c.UID)
			a.pipeline.Probed(c.UID)
		}
	})
}

// errRunReturned is why Drain fails when the agent stops meanwhile.
var errRunReturned = errors.New("Run has returned")

// listRetry is the time between two attempts of Drain to list the pods.
const listRetry = time.Second

// Drain stops the sources, terminates every pod that the agent or the runtime
// knows, each with its own grace period, and delivers the last statuses. It
// returns nil when nothing of any pod is left to do. Run must be running, or be
// called soon; afterwards it has no pods to run, and no source specifies new ones.
//
// If ctx is done Drain returns an error that wraps the cause; the pods that were
// not terminated by then continue to terminate while Run runs. It returns an error
// if Run returns first. It may be called again.
func (a *Agent) Drain(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-a.ended:
			cancel(errRunReturned)
		case <-ctx.Done():
		}
	}()
	if err := a.drainPods(ctx); err != nil {
		return fmt.Errorf("agent: drain: %w", err)
	}
	if err := a.statuses.Flush(ctx); err != nil {
		return fmt.Errorf("agent: drain: deliver the last statuses: %w", err)
	}
	return nil
}

// StopSources stops the sources and returns nil when they have returned: from then
// on the set of desired pods does not change. It returns an error if ctx is done
// first. It is for a caller that terminates the pods itself; Drain includes it.
func (a *Agent) StopSources(ctx context.Context) error {
	a.drain.Do(func() { close(a.draining) })
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
	if err := a.StopSources(ctx); err != nil {
		return err
	}
	// A pod of an earlier agent is known once the runtime has listed it.
	for began := time.Now(); ; {
		_, err := a.changes.PodsNewerThan(ctx, began)
		if err == nil {
			break
		}
		select {
		case <-time.After(listRetry):
		case <-ctx.Done():
			return fmt.Errorf("list the pods of the runtime: %w (%v)", context.Cause(ctx), err)
		}
	}
	return a.loop.Drain(ctx)
}
