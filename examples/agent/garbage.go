package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// garbage is what is left of pods that are gone: in the runtime, in the records
// of what they were granted, and their probes.
type garbage struct {
	runtime.GarbageCollector
	granted *allocation.Manager
	probes  *prober.Manager
}

func (g garbage) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if policy.Removed != nil {
		keep := func(uid types.UID) bool { return !policy.Removed(uid) }
		g.granted.Prune(keep)
		g.probes.Retain(keep)
	}
	return g.GarbageCollector.CollectGarbage(ctx, policy)
}
