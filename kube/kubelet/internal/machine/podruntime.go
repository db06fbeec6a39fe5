package machine

import (
	"context"
	"errors"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// A PodRuntime runs pods: on CRI services, or as Config.Runtime.New does. Its methods have a result also
// if Runtime is not of their optional interface.
type PodRuntime struct {
	runtime.Runtime
	Name     string                                // prefix of container IDs
	Display  string                                // for operators
	Version  func(context.Context) (string, error) // for the node status
	Facts    podconfig.Node
	Admitter pipeline.Admitter // nil: it admits all pods
	Ledger   *cri.Ledger       // nil: all pods of the runtime belong to this node
	IDs      *userns.Allocator // of user namespaces; nil: pods have none
}

// Unwrap implements compose.Wrapper.
func (r PodRuntime) Unwrap() any { return r.Runtime }

// Features returns the zero Features, Unreported, of a runtime that is no runtime.FeatureReporter.
func (r PodRuntime) Features(ctx context.Context) (runtime.Features, error) {
	if reporter, ok := compose.As[runtime.FeatureReporter](r.Runtime); ok {
		return reporter.Features(ctx)
	}
	return runtime.Features{Unreported: true}, nil
}

// CollectGarbage does nothing if the runtime is no runtime.GarbageCollector.
func (r PodRuntime) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	if collector, ok := compose.As[runtime.GarbageCollector](r.Runtime); ok {
		return collector.CollectGarbage(ctx, policy)
	}
	return nil
}

// PodStats returns no usage of a runtime that measures none.
func (r PodRuntime) PodStats(ctx context.Context) ([]runtime.PodStats, error) {
	provider, ok := compose.As[runtime.StatsProvider](r.Runtime)
	if !ok {
		return nil, nil
	}
	stats, err := provider.PodStats(ctx)
	return stats, unlessUnsupported(err)
}

// ImageFS returns no file systems of a runtime that reports none.
func (r PodRuntime) ImageFS(ctx context.Context) (images, containers []runtime.FSUsage, err error) {
	reporter, ok := compose.As[runtime.ImageFSReporter](r.Runtime)
	if !ok {
		return nil, nil, nil
	}
	images, containers, err = reporter.ImageFS(ctx)
	return images, containers, unlessUnsupported(err)
}

// LogPath returns runtime.ErrUnsupported if the runtime has no log files, or does not reopen them: they
// are then not rotated.
func (r PodRuntime) LogPath(ctx context.Context, containerID string) (string, error) {
	reader, reads := compose.As[runtime.LogReader](r.Runtime)
	if _, reopens := compose.As[runtime.LogRotator](r.Runtime); !reads || !reopens {
		return "", runtime.ErrUnsupported
	}
	return reader.LogPath(ctx, containerID)
}

// ReopenLog is called after LogPath only.
func (r PodRuntime) ReopenLog(ctx context.Context, containerID string) error {
	if rotator, ok := compose.As[runtime.LogRotator](r.Runtime); ok {
		return rotator.ReopenLog(ctx, containerID)
	}
	return runtime.ErrUnsupported
}

// unlessUnsupported returns nil for an error that is runtime.ErrUnsupported.
func unlessUnsupported(err error) error {
	if errors.Is(err, runtime.ErrUnsupported) {
		return nil
	}
	return err
}

// A Listed runtime returns PLEG's pods, for components that list periodically: they need no calls
// of their own, and get the same pods as the agent.
type Listed struct {
	PodRuntime
	Table *podworker.Table
}

func (r Listed) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	if pods, ok := r.Table.Listed(); ok {
		return pods, nil
	}
	return r.PodRuntime.Pods(ctx)
}
