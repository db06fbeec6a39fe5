package podwing

import (
	"context"
	"errors"
	"slices"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime"
)

type agentDeps struct {
	cluster    *stores.Cluster
	sources    Sources
	runtime    machine.PodRuntime
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
		NodeName: b.Config.NodeName, Runtime: d.runtime.Runtime, Sources: d.sources.ByName, Static: d.sources.Static, Sink: stores.NewSink(b, d.cluster, d.snapshot),
		Subsystems: agent.Subsystems{
			Admitters: admitters(b, d), Volumes: d.volumes.Manager, Cgroups: d.cgroups.ForPods(), Allocation: d.allocation,
			Probes: prober.Handlers{HTTPGet: prober.HTTPGet{}, TCPSocket: prober.TCPSocket{}, GRPC: grpcprobe.Handler{}},
		},
		HostIPs: d.hostIPs, Table: b.Pods.Table, Record: b.Record, Logger: b.Logger,
	}
	// A nil pointer must not become a non-nil interface.
	if d.runtime.Ledger != nil {
		cfg.Subsystems.Ledger = d.runtime.Ledger
	}
	if execer, ok := compose.As[runtime.Execer](d.runtime.Runtime); ok {
		cfg.Subsystems.Probes.Exec = prober.Exec{Runtime: execer}
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
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	if len(cfg.Sources) == 0 {
		return nil, errors.New("there is no source of pods: want a cluster, or staticPodPath or staticPodURL in the Configuration")
	}
	// The kubelet's own are first, and cannot be replaced.
	cfg.Retainers = append(retainers(d), cfg.Retainers...)
	cfg.Adjust = slices.Concat(adjustComponents(ctx, b, d), compose.Only(b.Config.Adjust, agent.Adjustable()...), cfg.Adjust)
	return agent.New(cfg)
}

// retainers returns the subsystems with state for each pod that are not those of the agent.
func retainers(d agentDeps) []podworker.Retainer {
	all := []podworker.Retainer{d.history}
	if d.runtime.IDs != nil {
		all = append(all, d.runtime.IDs)
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
	all := pipeline.Admitters{d.evictions, d.declared, d.volumes.Support}
	if d.runtime.Admitter != nil {
		all = append(all, d.runtime.Admitter)
	}
	all = append(all, d.allocation, b.Shutdown)
	if d.managers != nil {
		all = append(all, d.managers)
	}
	return append(all, admission.IgnoredFields(b.Record))
}
