package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// A garbage removes what the parts keep of deleted pods: in memory, in the
// allocation's checkpoint, and in the runtime. Each field may be nil.
type garbage struct {
	allocated *allocation.Manager
	probes    *prober.Manager
	runtime   runtime.GarbageCollector
}

// newGarbage returns nil if nothing keeps anything.
func newGarbage(cfg Config, probes *prober.Manager) runtime.GarbageCollector {
	collector, ok := cfg.Runtime.(runtime.GarbageCollector)
	if !ok && cfg.Allocation == nil && probes == nil {
		return nil
	}
	return garbage{cfg.Allocation, probes, collector}
}

// CollectGarbage implements runtime.GarbageCollector.
func (g garbage) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if policy.Removed != nil {
		keep := func(uid types.UID) bool { return !policy.Removed(uid) }
		if g.allocated != nil {
			g.allocated.Prune(keep)
		}
		if g.probes != nil {
			g.probes.Retain(keep)
		}
	}
	if g.runtime == nil {
		return nil
	}
	return g.runtime.CollectGarbage(ctx, policy)
}
