package agent

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// A volumeCollector is an optional interface of Subsystems.Volumes: volume.Manager.
type volumeCollector interface {
	// Collect removes the volumes of every pod that keep rejects.
	Collect(ctx context.Context, keep func(types.UID) bool) error
	HasVolumes(uid types.UID) bool
}

// A cgroupCollector is an optional interface of Subsystems.Cgroups: cm.Manager.
type cgroupCollector interface {
	// Collect removes the cgroups of removed pods without volumes.
	Collect(ctx context.Context, removed, hasVolumes func(types.UID) bool) error
}

// A garbage removes the state of removed pods: in memory, in the allocation's checkpoint,
// in the runtime, on disk, and in cgroups. Each field but pods may be nil.
type garbage struct {
	allocated *allocation.Manager
	probes    *prober.Manager
	runtime   runtime.GarbageCollector
	pods      runtime.Lister
	volumes   volumeCollector
	cgroups   cgroupCollector
}

// newGarbage returns nil if no component has state to remove.
func newGarbage(cfg Config, probes *prober.Manager) runtime.GarbageCollector {
	g := garbage{allocated: cfg.Subsystems.Allocation, probes: probes, pods: cfg.Runtime}
	g.runtime, _ = runtime.As[runtime.GarbageCollector](cfg.Runtime)
	g.volumes, _ = cfg.Subsystems.Volumes.(volumeCollector)
	g.cgroups, _ = cfg.Subsystems.Cgroups.(cgroupCollector)
	if g.allocated == nil && g.probes == nil && g.runtime == nil && g.volumes == nil && g.cgroups == nil {
		return nil
	}
	return g
}

// CollectGarbage implements runtime.GarbageCollector. Volumes and allocated resources are
// removed after the containers that use them, and cgroups last.
func (g garbage) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if policy.Removed != nil && g.probes != nil {
		g.probes.Retain(func(uid types.UID) bool { return !policy.Removed(uid) })
	}
	var err error
	if g.runtime != nil {
		err = g.runtime.CollectGarbage(ctx, policy)
	}
	if policy.Removed == nil {
		return err
	}
	return errors.Join(err, g.collectUnlisted(ctx, policy.Removed), g.collectCgroups(ctx, policy.Removed))
}

// collectUnlisted removes the volumes of removed pods that the runtime no longer lists,
// and releases their resources. An orphaned pod is removed before it is
// terminated: it has no worker until the runtime has listed it.
func (g garbage) collectUnlisted(ctx context.Context, removed func(types.UID) bool) error {
	if g.volumes == nil && g.allocated == nil {
		return nil
	}
	pods, err := g.pods.Pods(ctx)
	if err != nil {
		return fmt.Errorf("collect volumes and resources: list the pods of the runtime: %w", err)
	}
	listed := map[types.UID]bool{}
	for _, p := range pods {
		listed[p.UID] = true
	}
	keep := func(uid types.UID) bool { return listed[uid] || !removed(uid) }
	if g.allocated != nil {
		g.allocated.Prune(keep)
	}
	if g.volumes == nil {
		return nil
	}
	return g.volumes.Collect(ctx, keep)
}

func (g garbage) collectCgroups(ctx context.Context, removed func(types.UID) bool) error {
	if g.cgroups == nil {
		return nil
	}
	var hasVolumes func(types.UID) bool
	if g.volumes != nil {
		hasVolumes = g.volumes.HasVolumes
	}
	return g.cgroups.Collect(ctx, removed, hasVolumes)
}
