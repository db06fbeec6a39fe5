package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (r *Runtime) ContainerStats(ctx context.Context, containerID string) (*runtimeapi.ContainerStats, error) {
	return nil, unimplemented("ContainerStats", "not yet")
}

func (r *Runtime) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return nil, unimplemented("ListContainerStats", "not yet")
}

func (r *Runtime) PodSandboxStats(ctx context.Context, podSandboxID string) (*runtimeapi.PodSandboxStats, error) {
	return nil, unimplemented("PodSandboxStats", "not yet")
}

func (r *Runtime) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return nil, unimplemented("ListPodSandboxStats", "not yet")
}

// ListMetricDescriptors is not implemented.
func (r *Runtime) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return call(ctx, r, Call{Method: "ListMetricDescriptors"}, func(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
		return nil, unimplemented("ListMetricDescriptors", "see ListContainerStats")
	})
}

// ListPodSandboxMetrics is not implemented.
func (r *Runtime) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return call(ctx, r, Call{Method: "ListPodSandboxMetrics"}, func(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
		return nil, unimplemented("ListPodSandboxMetrics", "see ListPodSandboxStats")
	})
}
