package kubelet

import (
	"context"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/shutdown"
)

// The pod pipeline is the third wing of a kubelet: the agent, and what terminates its pods.
type podPipeline struct {
	sources   sources
	evictions *eviction.Manager
	agent     *agent.Agent
	shutdown  *shutdown.Manager

	podsAPI []component
}

func openPodPipeline(ctx context.Context, s *stores, m *machine) (p *podPipeline, err error) {
	p = new(podPipeline)
	if p.evictions, err = newEviction(s.base, evictionDeps{
		runtime: m.runtime, cgroups: m.cgroups, images: m.images, standalone: s.cluster == nil, stats: m.stats, passed: s.history.EvictionPass,
	}); err != nil {
		return nil, err
	}
	if p.sources, err = newSources(s.base, s.cluster); err != nil {
		return nil, err
	}
	if p.agent, err = newAgent(ctx, s.base, agentDeps{
		cluster: s.cluster, snapshot: s.snapshot, hostIPs: s.hostIPs, history: s.history,
		runtime: m.runtime, ledger: m.services.ledger, declared: m.declared, cgroups: m.cgroups, managers: m.managers, volumes: m.volumes, allocation: m.allocation, images: m.images,
		sources: p.sources, evictions: p.evictions,
	}); err != nil {
		return nil, err
	}
	if p.podsAPI, err = newPodsAPI(s.base, p.agent); err != nil {
		return nil, err
	}
	p.shutdown, err = newShutdown(s.base, p.agent.Status())
	return p, err
}

func (p *podPipeline) components() []component {
	return append([]component{p.agent.Run, p.evictions.Run, p.shutdown.Run}, p.podsAPI...)
}
