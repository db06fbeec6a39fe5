package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
// in the runtime, on disk, in cgroups, and in drivers of resource claims. Each field but pods may be nil.
type garbage struct {
	allocated *allocation.Manager
	probes    *prober.Manager
	runtime   runtime.GarbageCollector
	pods      runtime.Lister
	volumes   volumeCollector
	cgroups   cgroupCollector
	claims    Claims
	ledger    Ledger
}

// newGarbage returns nil if no component has state to remove.
func newGarbage(cfg Config, probes *prober.Manager) runtime.GarbageCollector {
	g := garbage{allocated: cfg.Subsystems.Allocation, probes: probes, pods: cfg.Runtime, claims: cfg.Subsystems.Claims, ledger: cfg.Subsystems.Ledger}
	g.runtime, _ = runtime.As[runtime.GarbageCollector](cfg.Runtime)
	g.volumes, _ = cfg.Subsystems.Volumes.(volumeCollector)
	g.cgroups, _ = cfg.Subsystems.Cgroups.(cgroupCollector)
	if g.allocated == nil && g.probes == nil && g.runtime == nil && g.volumes == nil && g.cgroups == nil && g.claims == nil {
		return nil
	}
	return g
}

// CollectGarbage implements runtime.GarbageCollector. Volumes and allocated resources are
// removed after the containers that use them, and cgroups last. The ledger forgets a pod
// after everything else was removed: it is the evidence that the rest belongs to this node.
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
	withCgroups := map[types.UID]bool{}
	err = errors.Join(err, g.collectTerminated(ctx, policy.Removed), g.collectCgroups(ctx, policy.Removed, withCgroups))
	if err != nil || g.ledger == nil {
		return err
	}
	return g.prune(ctx, policy.Removed, withCgroups)
}

// prune deletes the removed pods from the ledger that are not in the runtime and not in
// withCgroups. The runtime is listed only if there is a removed pod.
func (g garbage) prune(ctx context.Context, removed func(types.UID) bool, withCgroups map[types.UID]bool) error {
	listed := sync.OnceValues(func() (map[types.UID]bool, error) {
		pods, err := g.pods.Pods(ctx)
		listed := map[types.UID]bool{}
		for _, p := range pods {
			listed[p.UID] = true
		}
		return listed, err
	})
	var listErr error
	err := g.ledger.Prune(func(uid types.UID) bool {
		if !removed(uid) || withCgroups[uid] {
			return false
		}
		pods, err := listed()
		if err != nil {
			listErr = fmt.Errorf("prune the ledger: list the pods of the runtime: %w", err)
		}
		return err == nil && !pods[uid]
	})
	return errors.Join(err, listErr)
}

// collectTerminated removes the volumes of removed pods that do not run, and releases their resources. An orphaned pod is
// removed before it is terminated: it has no worker until the runtime has listed it. A container that the runtime refuses to
// remove does not keep them. The runtime is listed only if there is a removed pod.
func (g garbage) collectTerminated(ctx context.Context, removed func(types.UID) bool) error {
	if g.volumes == nil && g.allocated == nil && g.claims == nil {
		return nil
	}
	running := sync.OnceValues(func() (map[types.UID]bool, error) {
		pods, err := g.pods.Pods(ctx)
		running := map[types.UID]bool{}
		for _, p := range pods {
			running[p.UID] = p.MayRun()
		}
		return running, err
	})
	var listErr error
	keep := func(uid types.UID) bool {
		if !removed(uid) {
			return true
		}
		pods, err := running()
		if err != nil {
			listErr = fmt.Errorf("collect volumes and resources: list the pods of the runtime: %w", err)
		}
		return err != nil || pods[uid]
	}
	if g.allocated != nil {
		g.allocated.Prune(keep)
	}
	if g.claims != nil {
		g.claims.Retain(keep)
	}
	if g.volumes == nil {
		return listErr
	}
	return errors.Join(g.volumes.Collect(ctx, keep), listErr)
}

// collectCgroups removes cgroups, and adds the pods that keep theirs to kept.
func (g garbage) collectCgroups(ctx context.Context, removed func(types.UID) bool, kept map[types.UID]bool) error {
	if g.cgroups == nil {
		return nil
	}
	var hasVolumes func(types.UID) bool
	if g.volumes != nil {
		var mu sync.Mutex
		hasVolumes = func(uid types.UID) bool {
			has := g.volumes.HasVolumes(uid)
			if has {
				mu.Lock()
				defer mu.Unlock()
				kept[uid] = true
			}
			return has
		}
	}
	return g.cgroups.Collect(ctx, removed, hasVolumes)
}
