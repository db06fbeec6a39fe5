package containers

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// unimplemented has the methods of the CRI that no backend supports. Package cri reports them as
// runtime.ErrUnsupported.
type unimplemented struct{}

func unsupported(method, why string) error {
	return status.Errorf(codes.Unimplemented, "containers: %s: %s", method, why)
}

func (unimplemented) Close(context.Context) error { return nil }

func (unimplemented) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return unsupported("UpdateContainerResources", "a backend does not resize")
}

func (unimplemented) UpdatePodSandboxResources(context.Context, *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return nil, unsupported("UpdatePodSandboxResources", "a backend does not resize")
}

func (unimplemented) Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return nil, unsupported("Exec", "there is no streaming server")
}

func (unimplemented) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, unsupported("Attach", "there is no streaming server")
}

func (unimplemented) PortForward(context.Context, *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return nil, unsupported("PortForward", "there is no streaming server")
}

func (unimplemented) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return unsupported("CheckpointContainer", "a backend has no checkpoints")
}

func (unimplemented) CheckpointPod(context.Context, *runtimeapi.CheckpointPodRequest) error {
	return unsupported("CheckpointPod", "a backend has no checkpoints")
}

func (unimplemented) RestorePod(context.Context, *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, unsupported("RestorePod", "a backend has no checkpoints")
}

func (unimplemented) PodSandboxStats(context.Context, string) (*runtimeapi.PodSandboxStats, error) {
	return nil, unsupported("PodSandboxStats", "see ContainerStats")
}

func (unimplemented) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return nil, unsupported("ListPodSandboxStats", "see ListContainerStats")
}

func (unimplemented) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, unsupported("ListMetricDescriptors", "see ListContainerStats")
}

func (unimplemented) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, unsupported("ListPodSandboxMetrics", "see ListContainerStats")
}

func (unimplemented) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error {
	return unsupported("UpdateRuntimeConfig", "the backend assigns addresses")
}

func (unimplemented) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return nil, unsupported("RuntimeConfig", "there are no cgroups")
}
