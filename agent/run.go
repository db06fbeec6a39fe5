package agent

import (
	"context"

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
	return a.changes.Follow(ctx, func(e pleg.Event) { a.probes.Inspect(e.UID) })
}

// resultsToLoop has a pod synced when the result of a probe changes, and its status
// reported at once if SyncPod or KillPod is in progress.
func (a *Agent) resultsToLoop(ctx context.Context) error {
	return a.probes.Follow(ctx, func(c prober.Change) {
		if c.NeedsSync() {
			a.inbox.PodChanged(c.UID)
			a.pipeline.Probed(c.UID)
		}
	})
}
