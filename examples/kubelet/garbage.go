package main

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/runtime"
)

// garbage is what is left of pods that are gone: in the runtime, in the records
// of what they were granted, their probes, their cgroups, and the directories of
// their volumes.
type garbage struct {
	runtime.GarbageCollector // of the agent: the runtime's, the grants, the probes
	connected                connected
	volumes                  *volumes
	said                     *remembered
	seen                     *statuspage.History
}

func (g garbage) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if policy.Removed != nil {
		keep := func(uid types.UID) bool { return !policy.Removed(uid) }
		g.connected.managers.retain(keep)
		g.seen.Prune(keep)
	}
	err := g.GarbageCollector.CollectGarbage(ctx, policy)
	if policy.Removed != nil {
		err = errors.Join(err,
			g.connected.releaseIDs(policy.Removed),
			g.volumes.collect(ctx, g.connected, policy.Removed),
			g.connected.node.clean(ctx, policy.Removed, g.volumes.HasVolumes), // behind the containers that are in them
			g.said.prune(func(uid types.UID) bool { return !policy.Removed(uid) }),
		)
	}
	return err
}
