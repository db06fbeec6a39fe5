package process

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// unimplemented returns the error of a method that does not apply to processes, or
// that would need a streaming server (see StreamExec and StreamPortForward).
func unimplemented(method, why string) error {
	return status.Errorf(codes.Unimplemented, "process: %s is not implemented: %s", method, why)
}

// UpdateContainerResources is not implemented: there are no cgroups, and limits
// would not be enforced.
func (r *Runtime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return unimplemented("UpdateContainerResources", "processes have no resource limits")
}

// UpdatePodSandboxResources is not implemented, as UpdateContainerResources.
func (r *Runtime) UpdatePodSandboxResources(context.Context, *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return nil, unimplemented("UpdatePodSandboxResources", "processes have no resource limits")
}

// Exec is not implemented: there is no streaming server. See StreamExec and
// ExecSync.
func (r *Runtime) Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return nil, unimplemented("Exec", "there is no streaming server; StreamExec runs a command")
}

// Attach is not implemented, as StreamAttach.
func (r *Runtime) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, unimplemented("Attach", noAttach)
}

// PortForward is not implemented: there is no streaming server. See
// StreamPortForward.
func (r *Runtime) PortForward(context.Context, *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return nil, unimplemented("PortForward", "there is no streaming server; StreamPortForward connects")
}

// CheckpointContainer is not implemented.
func (r *Runtime) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return unimplemented("CheckpointContainer", "processes cannot be checkpointed")
}

// CheckpointPod is not implemented.
func (r *Runtime) CheckpointPod(context.Context, *runtimeapi.CheckpointPodRequest) error {
	return unimplemented("CheckpointPod", "processes cannot be checkpointed")
}

// RestorePod is not implemented.
func (r *Runtime) RestorePod(context.Context, *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, unimplemented("RestorePod", "processes cannot be checkpointed")
}

// ListMetricDescriptors is not implemented; see ContainerStats.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, unimplemented("ListMetricDescriptors", "see ListContainerStats")
}

// ListPodSandboxMetrics is not implemented; see PodSandboxStats.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, unimplemented("ListPodSandboxMetrics", "see ListPodSandboxStats")
}

// UpdateRuntimeConfig is not implemented: pods have loopback addresses, not
// addresses of a pod CIDR.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error {
	return unimplemented("UpdateRuntimeConfig", "pods have loopback addresses, not ones of a pod CIDR")
}

// RuntimeConfig is not implemented: there is no cgroup driver.
func (r *Runtime) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return nil, unimplemented("RuntimeConfig", "there is no cgroup driver")
}
