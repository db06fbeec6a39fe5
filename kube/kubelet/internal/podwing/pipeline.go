// Package podwing is the third wing of a kubelet: the agent, and what terminates its pods.
package podwing

import (
	"context"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/shutdown"
)

// A Pipeline is the third wing of a kubelet: the agent, and what terminates its pods.
type Pipeline struct {
	Sources   Sources
	Evictions *eviction.Manager
	Agent     *agent.Agent
	shutdown  *shutdown.Manager

	podsAPI []stores.Component
}

func Open(ctx context.Context, s *stores.Stores, m *machine.Machine) (p *Pipeline, err error) {
	p = new(Pipeline)
	if p.Evictions, err = newEviction(s.Base, evictionDeps{
		runtime: m.Runtime, cgroups: m.Cgroups, images: m.Images, standalone: s.Cluster == nil, stats: m.Stats, passed: s.History.EvictionPass,
	}); err != nil {
		return nil, err
	}
	if p.Sources, err = newSources(s.Base, s.Cluster); err != nil {
		return nil, err
	}
	if p.Agent, err = newAgent(ctx, s.Base, agentDeps{
		cluster: s.Cluster, snapshot: s.Snapshot, hostIPs: s.HostIPs, history: s.History,
		runtime: m.Runtime, declared: m.Declared, cgroups: m.Cgroups, managers: m.Managers, volumes: m.Volumes, allocation: m.Allocation, images: m.Images,
		sources: p.Sources, evictions: p.Evictions,
	}); err != nil {
		return nil, err
	}
	if p.podsAPI, err = newPodsAPI(s.Base, p.Agent); err != nil {
		return nil, err
	}
	p.shutdown, err = newShutdown(s.Base, p.Agent.Status())
	return p, err
}

func (p *Pipeline) Components() []stores.Component {
	return append([]stores.Component{p.Agent.Run, p.Evictions.Run, p.shutdown.Run}, p.podsAPI...)
}
