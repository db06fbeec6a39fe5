package podwing

import (
	"context"
	"path/filepath"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/status"
)

// adjustComponents connects the components of the agent to the subsystems of the node.
func adjustComponents(ctx context.Context, b stores.Base, d agentDeps) []compose.Adjustment {
	return []compose.Adjustment{
		compose.Adjust(func(c *pleg.Config) { c.Hooks = b.Metrics.PLEG() }),
		compose.Adjust(func(c *prober.Config) {
			c.Path, c.Hooks = filepath.Join(b.Config.RootDir, "probes.json"), b.Metrics.Prober()
		}),
		compose.Adjust(func(c *status.Config) {
			c.Restore, c.Hooks = d.snapshot.Earlier, b.Metrics.Status().Join(notifyStatuses(b))
			c.Facts = append(c.Facts, statusFacts(ctx, b, d))
		}),
		compose.Adjust(func(c *pipeline.Config) {
			c.Hooks = b.Metrics.Pipeline()
			if d.cluster != nil {
				c.Resources.Objects = d.cluster.Objects
			}
		}),
		compose.Adjust(func(c *podworker.Config) {
			c.Hooks, c.Resync = b.Metrics.PodWorker().Join(b.Traces.Workers()), b.Configuration.SyncFrequency.Duration
		}),
		compose.Adjust(func(c *podworker.LoopConfig) {
			c.Garbage, c.Hooks = b.Traces.Garbage(c.Garbage), b.Metrics.PodWorker()
		}),
		compose.Adjust(func(c *podsource.MergeConfig) {
			c.Sink, c.Hooks = d.declared.Sink(notifyPods(b, c.Sink), b.Record), b.Metrics.Sources()
		}),
	}
}

// statusFacts returns the function that adds the facts of the node's subsystems about a pod.
// The features of the runtime are those at the start.
func statusFacts(ctx context.Context, b stores.Base, d agentDeps) func(*status.Facts) {
	has, err := d.runtime.Features(ctx)
	recursive := err == nil && has.Handlers[""].RecursiveReadOnlyMounts
	return func(f *status.Facts) {
		f.RecursiveReadOnly = recursive && f.Pod.Spec.RuntimeClassName == nil
		f.DeviceHealth = d.managers.Health(f.Pod.UID)
		if b.Shutdown.Unready(f.Pod.UID) {
			f.Unready = status.Unready{Reason: shutdown.ReasonNodeShutdown, Message: shutdown.ErrShuttingDown.Error()}
		}
		if d.volumes.Health != nil {
			f.VolumeHealth = d.volumes.Health(f.Pod)
		}
	}
}
