package main

import (
	"context"
	"path/filepath"

	core "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/status"
)

// A knowledge is the pod pipeline: the pods that sources specify, what the runtime
// reports of them, the results of their probes, and their statuses.
type knowledge struct {
	agent    *core.Agent
	changes  *pleg.Generator
	health   *podworker.Health
	probes   *prober.Manager
	statuses *status.Manager

	said  *remembered
	local wantedPods // all but the cluster's
}

func (a *assembly) watch(ctx context.Context, g ground) (k knowledge, err error) {
	if k.said, err = a.rememberStatuses(); err != nil {
		return k, err
	}
	if k.local, err = a.sourcesOf(); err != nil {
		return k, err
	}
	sources, err := a.cluster.sources(a.opts, k.local.sources)
	if err != nil {
		return k, err
	}
	if k.agent, err = core.New(a.agentConfig(ctx, g, k.said, sources)); err != nil {
		return k, err
	}
	k.changes, k.health, k.probes, k.statuses = k.agent.PLEG(), k.agent.Health(), k.agent.Prober(), k.agent.Status()
	a.pods.workers, a.pods.loop, a.pods.statuses = k.agent.Workers(), k.agent.Loop(), k.statuses
	a.cluster.onReturn(k.statuses.Retry)
	return k, nil
}

// agentConfig connects the pod pipeline with the subsystems of the node.
func (a *assembly) agentConfig(ctx context.Context, g ground, said *remembered, sources map[string]podsource.PodSource) core.Config {
	cfg := core.Config{
		NodeName: a.opts.nodeName, Runtime: g.rt, Sources: sources, Sink: said.beside(a.cluster.sink(a.out)),
		Admitters: a.admitters(g), Volumes: g.volumes, Cgroups: g.rt.node.forPods(), Probes: probeHandlers(g.rt),
		Allocation: g.granted, Mirrors: a.cluster.mirrorPods(), HostIPs: a.hostIPs, Inbox: a.inbox, Record: a.record, Logger: a.logger,
		Adjust: core.Adjust{
			PLEG: func(c *pleg.Config) { c.Hooks = a.count.PLEG() },
			Prober: func(c *prober.Config) {
				c.File, c.Hooks = filepath.Join(a.opts.root, "probes.json"), a.count.Prober()
			},
			Status: func(c *status.Config) {
				c.Earlier, c.RecursiveReadOnly = said.earlier, mountsRecursively(ctx, g.rt)
				c.Health, c.Unready, c.Hooks = g.rt.managers.health(), g.leaving.unready, a.count.Status()
			},
			Pipeline: func(c *podworker.PipelineConfig) {
				c.Hooks, c.Objects = a.count.Pipeline(), a.cluster.pipelineObjects()
			},
			Workers: func(c *podworker.Config) {
				c.Hooks, c.Resync = a.count.Workers(), a.opts.kubelet.SyncFrequency.Duration
			},
			Loop: func(c *podworker.LoopConfig) {
				c.Garbage, c.Hooks = garbage{c.Garbage, g.rt, said, a.seen}, a.count.Loop()
			},
			Merge: func(c *podsource.MergeConfig) { c.Hooks = a.count.Sources() },
		},
	}
	if g.images != nil {
		cfg.Images = g.images.gc
	}
	return cfg
}

// describeNode makes the node object, if there is a cluster.
func (a *assembly) describeNode(ctx context.Context, g ground, k knowledge) error {
	features, err := g.rt.Features(ctx)
	if err != nil {
		a.logger.Warn("Failed to read the features of the runtime; the node declares none of them until the agent restarts", "err", err)
	}
	has, fresh := g.rt.managers.intoNode(g.rt.node.machine(a.opts.maxPods()))
	return a.cluster.describe(nodeFacts{
		runtime: g.rt, port: a.ports.number(), health: k.health, pleg: k.changes.Healthy, shutdown: g.leaving.Err, machine: has, fresh: fresh, features: features,
		pressure: pressure(g.evictions), volumesInUse: g.volumes.InUse, images: g.images.list(int(deref(a.opts.kubelet.NodeStatusMaxImages))),
	})
}
