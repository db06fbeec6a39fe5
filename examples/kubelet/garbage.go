package main

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/runtime"
)

// garbage removes what is left of removed pods, beyond what the agent removes.
type garbage struct {
	runtime.GarbageCollector // of the agent
	connected                connected
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
			g.said.prune(func(uid types.UID) bool { return !policy.Removed(uid) }),
		)
	}
	return err
}
