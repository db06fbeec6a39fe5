package main

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// garbage is what is left of pods that are gone: in the runtime, in the records
// of what they were granted, their probes, and their cgroups.
type garbage struct {
	runtime.GarbageCollector
	granted  *allocation.Manager
	probes   *prober.Manager
	node     *podNode
	managers *nodeManagers
}

func (g garbage) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if policy.Removed != nil {
		keep := func(uid types.UID) bool { return !policy.Removed(uid) }
		g.granted.Prune(keep)
		g.probes.Retain(keep)
		g.managers.retain(keep)
	}
	err := g.GarbageCollector.CollectGarbage(ctx, policy)
	if policy.Removed != nil {
		err = errors.Join(err, g.node.clean(ctx, policy.Removed)) // behind the containers that are in them
	}
	return err
}
