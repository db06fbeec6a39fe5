package kubelet

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/status"
)

type agentDeps struct {
	cluster    *cluster
	sources    sources
	runtime    podRuntime
	ledger     *cri.Ledger
	declared   declaredFeatures
	cgroups    podCgroups
	managers   *resourceManagers
	volumes    *volumes
	allocation *allocation.Manager
	images     *nodeImages
	evictions  *eviction.Manager
	snapshot   *snapshot
	hostIPs    func() []string
	history    *statuspage.History
}

// newAgent connects the pod pipeline to the subsystems of the node.
func newAgent(ctx context.Context, b base, d agentDeps) (*agent.Agent, error) {
	cfg := agent.Config{
		NodeName: b.cfg.NodeName, Runtime: d.runtime, Sources: d.sources.byName, Static: d.sources.static, Sink: newSink(b, d.cluster, d.snapshot),
		Subsystems: agent.Subsystems{
			Admitters: admitters(b, d), Volumes: d.volumes.Manager, Cgroups: d.cgroups.forPods(), Allocation: d.allocation, Ledger: d.ledger,
			Probes: prober.Handlers{
				Exec: prober.Exec{Runtime: d.runtime}, HTTPGet: prober.HTTPGet{}, TCPSocket: prober.TCPSocket{}, GRPC: grpcprobe.Handler{},
			},
		},
		HostIPs: d.hostIPs, Table: b.pods.Table, Record: b.record, Logger: b.logger,
	}
	if d.cluster != nil {
		cfg.Subsystems.Mirrors = d.cluster.mirrors
	}
	if d.managers != nil && d.managers.claims != nil {
		cfg.Subsystems.Claims = d.managers.claims
	}
	if gc := d.images.manager(); gc != nil {
		cfg.Subsystems.Images = gc
	}
	if err := compose.Apply(b.cfg.Adjust, "Agent", &cfg); err != nil {
		return nil, err
	}
	if len(cfg.Sources) == 0 {
		return nil, errors.New("there is no source of pods: want a cluster, or staticPodPath or staticPodURL in the Configuration")
	}
	// The kubelet's own are first, and cannot be replaced.
	cfg.Retainers = append(retainers(d), cfg.Retainers...)
	cfg.Adjust = append([]agent.Adjust{adjustComponents(ctx, b, d)}, cfg.Adjust...)
	return agent.New(cfg)
}

// retainers returns the subsystems with state for each pod that are not those of the agent.
func retainers(d agentDeps) []podworker.Retainer {
	all := []podworker.Retainer{d.history}
	if d.runtime.ids != nil {
		all = append(all, d.runtime.ids)
	}
	if d.managers != nil {
		all = append(all, d.managers)
	}
	if d.snapshot != nil {
		all = append(all, d.snapshot)
	}
	return all
}

// adjustComponents connects the components of the agent to the subsystems of the node.
func adjustComponents(ctx context.Context, b base, d agentDeps) agent.Adjust {
	return agent.Adjust{
		PLEG: func(c *pleg.Config) { c.Hooks = b.metrics.PLEG() },
		Prober: func(c *prober.Config) {
			c.Path, c.Hooks = filepath.Join(b.cfg.RootDir, "probes.json"), b.metrics.Prober()
		},
		Status: func(c *status.Config) {
			c.Restore, c.Hooks = d.snapshot.earlier, b.metrics.Status().Join(notifyStatuses(b))
			c.Facts = append(c.Facts, statusFacts(ctx, b, d))
		},
		Pipeline: func(c *pipeline.Config) {
			c.Hooks = b.metrics.Pipeline()
			if d.cluster != nil {
				c.Resources.Objects = d.cluster.objects
			}
		},
		Workers: func(c *podworker.Config) {
			c.Hooks, c.Resync = b.metrics.PodWorker().Join(b.traces.workers()), b.k.SyncFrequency.Duration
		},
		Loop: func(c *podworker.LoopConfig) {
			c.Garbage, c.Hooks = b.traces.garbage(c.Garbage), b.metrics.PodWorker()
		},
		Merge: func(c *podsource.MergeConfig) {
			c.Sink, c.Hooks = d.declared.sink(notifyPods(b, c.Sink), b.record), b.metrics.Sources()
		},
	}
}

// admitters returns the admission checks, in order. The resource managers follow the
// others, since they allocate what they admit.
func admitters(b base, d agentDeps) pipeline.Admitters {
	all := pipeline.Admitters{d.evictions, d.declared, d.volumes.support, d.runtime, d.allocation, b.shutdown}
	if d.managers != nil {
		all = append(all, d.managers)
	}
	return append(all, admission.IgnoredFields(b.record))
}

// statusFacts returns the function that adds the facts of the node's subsystems about a pod.
// The features of the runtime are those at the start.
func statusFacts(ctx context.Context, b base, d agentDeps) func(*status.Facts) {
	has, err := d.runtime.Features(ctx)
	recursive := err == nil && has.Handlers[""].RecursiveReadOnlyMounts
	return func(f *status.Facts) {
		f.RecursiveReadOnly = recursive && f.Pod.Spec.RuntimeClassName == nil
		f.DeviceHealth = d.managers.health(f.Pod.UID)
		if b.shutdown.Unready(f.Pod.UID) {
			f.Unready = status.Unready{Reason: shutdown.ReasonNodeShutdown, Message: shutdown.ErrShuttingDown.Error()}
		}
		if d.volumes.health != nil {
			f.VolumeHealth = d.volumes.health(f.Pod)
		}
	}
}
