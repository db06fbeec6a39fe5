package kubelet

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// garbage adds the state of this package about pods to the garbage collection of the agent.
type garbage struct {
	runtime.GarbageCollector // of the agent
	managers                 *resourceManagers
	runtime                  podRuntime
	statuses                 *snapshot
	forget                   func(keep func(types.UID) bool)
}

// CollectGarbage implements runtime.GarbageCollector. Resources are released before, and
// everything on disk is removed after, the containers of a pod.
func (g garbage) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if policy.Removed == nil {
		return g.GarbageCollector.CollectGarbage(ctx, policy)
	}
	keep := func(uid types.UID) bool { return !policy.Removed(uid) }
	g.managers.prune(keep)
	g.forget(keep)
	return errors.Join(
		g.GarbageCollector.CollectGarbage(ctx, policy),
		g.runtime.releaseIDs(policy.Removed),
		g.statuses.prune(keep),
	)
}
