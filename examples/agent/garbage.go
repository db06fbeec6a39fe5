package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

// garbage is what is left of pods that are gone: in the runtime, and in the
// records of what they were granted.
type garbage struct {
	runtime.GarbageCollector
	granted *allocation.Manager
}

func (g garbage) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if policy.Removed != nil {
		g.granted.Prune(func(uid types.UID) bool { return !policy.Removed(uid) })
	}
	return g.GarbageCollector.CollectGarbage(ctx, policy)
}
