package podwing

import (
	"context"
	"errors"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

type agentDeps struct {
	cluster    *stores.Cluster
	sources    Sources
	runtime    machine.PodRuntime
	ledger     *cri.Ledger
	declared   machine.DeclaredFeatures
	cgroups    machine.PodCgroups
	managers   *machine.ResourceManagers
	volumes    *volumes.Volumes
	allocation *allocation.Manager
	images     *machine.NodeImages
	evictions  *eviction.Manager
	snapshot   *stores.Snapshot
	hostIPs    func() []string
	history    *statuspage.History
}

// newAgent connects the pod pipeline to the subsystems of the node.
func newAgent(ctx context.Context, b stores.Base, d agentDeps) (*agent.Agent, error) {
	cfg := agent.Config{
		NodeName: b.Config.NodeName, Runtime: d.runtime, Sources: d.sources.ByName, Static: d.sources.Static, Sink: stores.NewSink(b, d.cluster, d.snapshot),
		Subsystems: agent.Subsystems{
			Admitters: admitters(b, d), Volumes: d.volumes.Manager, Cgroups: d.cgroups.ForPods(), Allocation: d.allocation, Ledger: d.ledger,
			Probes: prober.Handlers{
				Exec: prober.Exec{Runtime: d.runtime}, HTTPGet: prober.HTTPGet{}, TCPSocket: prober.TCPSocket{}, GRPC: grpcprobe.Handler{},
			},
		},
		HostIPs: d.hostIPs, Table: b.Pods.Table, Record: b.Record, Logger: b.Logger,
	}
	if d.cluster != nil {
		cfg.Subsystems.Mirrors = d.cluster.Mirrors
	}
	if d.managers != nil && d.managers.Claims != nil {
		cfg.Subsystems.Claims = d.managers.Claims
	}
	if gc := d.images.Manager(); gc != nil {
		cfg.Subsystems.Images = gc
	}
	if err := compose.Apply(b.Config.Adjust, "Agent", &cfg); err != nil {
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
	if d.runtime.Ids != nil {
		all = append(all, d.runtime.Ids)
	}
	if d.managers != nil {
		all = append(all, d.managers)
	}
	if d.snapshot != nil {
		all = append(all, d.snapshot)
	}
	return all
}

// admitters returns the admission checks, in order. The resource managers follow the
// others, since they allocate what they admit.
func admitters(b stores.Base, d agentDeps) pipeline.Admitters {
	all := pipeline.Admitters{d.evictions, d.declared, d.volumes.Support, d.runtime, d.allocation, b.Shutdown}
	if d.managers != nil {
		all = append(all, d.managers)
	}
	return append(all, admission.IgnoredFields(b.Record))
}
