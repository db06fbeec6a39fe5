package agent

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// Run runs the agent until ctx is done and returns nil when every component
// has returned; the pods keep running. It returns the error of a component that fails,
// after it has stopped the others. A second call returns an error.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.once.Enter("agent: Agent"); err != nil {
		return err
	}
	defer close(a.ended)
	if a.health != nil {
		a.health.First(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range a.components() {
		group.Go(func() error { return run(ctx) })
	}
	close(a.running)
	return group.Wait()
}

// components returns the Run of every component.
func (a *Agent) components() []func(context.Context) error {
	runs := []func(context.Context) error{a.changes.Run, a.statuses.Run, a.loop.Run, a.runSources, a.observedToPods}
	if a.health != nil {
		runs = append(runs, a.health.run, a.listAtOutages)
	}
	if a.probes != nil {
		runs = append(runs, a.probes.Run, a.resultsToLoop)
	}
	if volumes, ok := compose.As[runtime.Watcher](a.volumes); ok {
		runs = append(runs, func(ctx context.Context) error { return volumes.Watch(ctx, a.table.PodChanged) })
	}
	return runs
}

// runSources runs the sources until ctx is done, or Drain stops them.
func (a *Agent) runSources(ctx context.Context) error {
	defer close(a.sourcesStopped)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.sourcesMu.Lock()
	a.stopSources = stop
	if a.draining {
		stop()
	}
	a.sourcesMu.Unlock()
	return a.merge.Run(ctx)
}

// listAtOutages lists the pods when the runtime no longer responds, and when it responds again: a
// runtime that hangs emits no events, and may have lost some without closing their stream. The next
// periodic list may be minutes away, and PLEG's health depends on lists.
func (a *Agent) listAtOutages(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.health.changed:
			_, _ = a.changes.PodsNewerThan(ctx, time.Now()) // logged by pleg
		}
	}
}

// observedToPods notifies the Pipeline of changes, so that a pod whose images are being pulled is
// reported as ready for them, and the prober, so that a new instance of a container is probed at once.
// The prober is the second, because its results have the pod reported as well (resultsToLoop).
func (a *Agent) observedToPods(ctx context.Context) error {
	return a.changes.Follow(ctx, func(e pleg.Event) {
		if observed, err := a.changes.Get(e.UID); err == nil {
			a.pipeline.Observed(e.UID, observed)
		}
		if a.probes != nil {
			a.probes.Inspect(e.UID)
		}
	})
}

// resultsToLoop notifies the Loop of changed probe results, and the Pipeline, which
// reports the status at once if SyncPod or KillPod is in progress.
func (a *Agent) resultsToLoop(ctx context.Context) error {
	return a.probes.Follow(ctx, func(c prober.Change) {
		if c.NeedsSync() {
			a.table.PodChanged(c.UID)
			a.pipeline.ProbeChanged(c.UID)
		}
	})
}
