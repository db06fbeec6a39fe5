package agent

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// construct constructs the components in the order of their dependencies.
func construct(cfg Config) (*Agent, error) {
	table := cfg.Table
	if table == nil {
		table = new(podworker.Table)
	}
	health := newHealth(cfg)
	changes, err := newPLEG(cfg, table)
	if err != nil {
		return nil, err
	}
	probes, err := newProber(cfg, changes)
	if err != nil {
		return nil, err
	}
	statuses, err := newStatus(cfg, probes)
	if err != nil {
		return nil, err
	}
	pipeline, err := newPipeline(cfg, health, changes, probes, statuses)
	if err != nil {
		return nil, err
	}
	workers, err := newWorkers(cfg, table, changes, pipeline)
	if err != nil {
		return nil, err
	}
	loop, err := newLoop(cfg, probes, workers)
	if err != nil {
		return nil, err
	}
	merge, err := newMerge(cfg, loop)
	if err != nil {
		return nil, err
	}
	return &Agent{
		volumes: cfg.Subsystems.Volumes,
		changes: changes, health: health, probes: probes, statuses: statuses,
		pipeline: pipeline, workers: workers, table: table, loop: loop, merge: merge,
		running: make(chan struct{}), sourcesStopped: make(chan struct{}), ended: make(chan struct{}),
	}, nil
}

func newHealth(cfg Config) *RuntimeHealth {
	checker, ok := compose.As[runtime.Checker](cfg.Runtime)
	if !ok {
		return nil
	}
	return newRuntimeHealth(checker)
}

func newPLEG(cfg Config, table *podworker.Table) (*pleg.Generator, error) {
	c := pleg.Config{
		Runtime: cfg.Runtime, Logger: cfg.Logger,
		Handle: func(e pleg.Event) {
			if e.Matters() {
				table.PodChanged(e.UID)
			}
		},
	}
	if err := compose.Apply(cfg.Adjust, &c); err != nil {
		return nil, err
	}
	return pleg.New(c)
}

func newProber(cfg Config, changes *pleg.Generator) (*prober.Manager, error) {
	h := cfg.Subsystems.Probes
	if h.Exec == nil && h.HTTPGet == nil && h.TCPSocket == nil && h.GRPC == nil {
		return nil, nil
	}
	c := prober.Config{Handlers: h, Status: changes.Get, HostIPs: cfg.HostIPs, Record: cfg.Record, Logger: cfg.Logger}
	if err := compose.Apply(cfg.Adjust, &c); err != nil {
		return nil, err
	}
	return prober.New(c)
}

func newStatus(cfg Config, probes *prober.Manager) (*status.Manager, error) {
	sub := cfg.Subsystems
	facts := func(f *status.Facts) {
		uid := f.Pod.UID
		if cfg.HostIPs != nil {
			f.HostIPs = cfg.HostIPs()
		}
		if probes != nil {
			f.Probes = probes.Containers(uid)
		}
		if sub.Allocation != nil {
			f.Resize = status.Resize{Conditions: sub.Allocation.ResizeState(uid).Conditions(), PodLevel: sub.Allocation.ActuatedPodResources(uid)}
		}
		if sub.Claims != nil {
			f.MayHaveResources = sub.Claims.MayHaveResources(uid)
		}
	}
	c := status.Config{Sink: cfg.Sink, Facts: []func(*status.Facts){facts}, Record: cfg.Record, Logger: cfg.Logger}
	if err := compose.Apply(cfg.Adjust, &c); err != nil {
		return nil, err
	}
	return status.New(c)
}

func newPipeline(cfg Config, health *RuntimeHealth, changes *pleg.Generator, probes *prober.Manager, statuses *status.Manager) (*pipeline.Pipeline, error) {
	sub := cfg.Subsystems
	c := pipeline.Config{
		Runtime: cfg.Runtime, Status: statuses, Mirrors: sub.Mirrors, Relister: changes, Record: cfg.Record, Logger: cfg.Logger,
		Resources: pipeline.Resources{Volumes: sub.Volumes, Cgroups: sub.Cgroups, Images: sub.Images},
	}
	// A nil pointer must not become a non-nil interface.
	if len(sub.Admitters) > 0 {
		c.Admission.Admitter = sub.Admitters
	}
	if health != nil {
		c.Network = health.Network
	}
	if probes != nil {
		c.Probes = probes
	}
	if sub.Allocation != nil {
		c.Resources.Allocation = sub.Allocation
	}
	if sub.Claims != nil {
		c.Resources.Claims = sub.Claims
	}
	if err := compose.Apply(cfg.Adjust, &c); err != nil {
		return nil, err
	}
	return pipeline.New(c)
}

func newWorkers(cfg Config, table *podworker.Table, changes *pleg.Generator, pipeline *pipeline.Pipeline) (*podworker.Workers, error) {
	c := podworker.Config{Table: table, Handler: pipeline, StatusCache: changes, Record: cfg.Record, Logger: cfg.Logger}
	if err := compose.Apply(cfg.Adjust, &c); err != nil {
		return nil, err
	}
	return podworker.New(c)
}

func newLoop(cfg Config, probes *prober.Manager, workers *podworker.Workers) (*podworker.Loop, error) {
	c := podworker.LoopConfig{
		Workers: workers, Sources: slices.Sorted(maps.Keys(cfg.Sources)),
		Garbage: newSweeper(cfg, probes), Mirrors: cfg.Subsystems.Mirrors, Logger: cfg.Logger,
	}
	if cfg.NodeName != "" {
		c.Node = v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: cfg.NodeName, UID: types.UID(cfg.NodeName)}
	}
	if err := compose.Apply(cfg.Adjust, &c); err != nil {
		return nil, err
	}
	return podworker.NewLoop(c)
}

func newMerge(cfg Config, loop *podworker.Loop) (*podsource.Merge, error) {
	c := podsource.MergeConfig{Sources: cfg.Sources, Static: cfg.Static, Sink: loop, Record: cfg.Record, Logger: cfg.Logger}
	if err := compose.Apply(cfg.Adjust, &c); err != nil {
		return nil, err
	}
	return podsource.NewMerge(c)
}
