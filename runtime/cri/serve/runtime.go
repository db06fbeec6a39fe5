package serve

import (
	"context"
	"errors"
	"math"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

// runtimeService implements the RuntimeService. It does not compile if the CRI has
// further calls.
type runtimeService struct {
	runtimeapi.UnsafeRuntimeServiceServer
	*Server
	runtime internalapi.RuntimeService
	host    string // host of stream URLs; empty if streams are not served
}

func (s *runtimeService) Version(ctx context.Context, req *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return s.runtime.Version(ctx, req.GetVersion())
}

func (s *runtimeService) Status(ctx context.Context, req *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return s.runtime.Status(ctx, req.GetVerbose())
}

func (s *runtimeService) RuntimeConfig(ctx context.Context, _ *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return s.runtime.RuntimeConfig(ctx)
}

func (s *runtimeService) UpdateRuntimeConfig(ctx context.Context, req *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return &runtimeapi.UpdateRuntimeConfigResponse{}, s.runtime.UpdateRuntimeConfig(ctx, req.GetRuntimeConfig())
}

func (s *runtimeService) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	id, err := s.runtime.RunPodSandbox(ctx, req.GetConfig(), req.GetRuntimeHandler())
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, err
}

func (s *runtimeService) StopPodSandbox(ctx context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	return &runtimeapi.StopPodSandboxResponse{}, s.runtime.StopPodSandbox(ctx, req.GetPodSandboxId())
}

func (s *runtimeService) RemovePodSandbox(ctx context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	return &runtimeapi.RemovePodSandboxResponse{}, s.runtime.RemovePodSandbox(ctx, req.GetPodSandboxId())
}

func (s *runtimeService) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	return s.runtime.PodSandboxStatus(ctx, req.GetPodSandboxId(), req.GetVerbose())
}

func (s *runtimeService) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return s.runtime.UpdatePodSandboxResources(ctx, req)
}

func (s *runtimeService) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	id, err := s.runtime.CreateContainer(ctx, req.GetPodSandboxId(), req.GetConfig(), req.GetSandboxConfig())
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, err
}

func (s *runtimeService) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	return &runtimeapi.StartContainerResponse{}, s.runtime.StartContainer(ctx, req.GetContainerId())
}

func (s *runtimeService) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	return &runtimeapi.StopContainerResponse{}, s.runtime.StopContainer(ctx, req.GetContainerId(), req.GetTimeout())
}

func (s *runtimeService) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	return &runtimeapi.RemoveContainerResponse{}, s.runtime.RemoveContainer(ctx, req.GetContainerId())
}

func (s *runtimeService) ContainerStatus(ctx context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return s.runtime.ContainerStatus(ctx, req.GetContainerId(), req.GetVerbose())
}

// UpdateContainerResources passes the resources of either operating system.
func (s *runtimeService) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return &runtimeapi.UpdateContainerResourcesResponse{}, s.runtime.UpdateContainerResources(ctx, req.GetContainerId(), &runtimeapi.ContainerResources{
		Linux: req.GetLinux(), Windows: req.GetWindows(),
	})
}

func (s *runtimeService) ReopenContainerLog(ctx context.Context, req *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	return &runtimeapi.ReopenContainerLogResponse{}, s.runtime.ReopenContainerLog(ctx, req.GetContainerId())
}

// ExecSync converts the timeout from seconds, and an ExitError to an exit code.
func (s *runtimeService) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	stdout, stderr, err := s.runtime.ExecSync(ctx, req.GetContainerId(), req.GetCmd(), seconds(req.GetTimeout()))
	resp := &runtimeapi.ExecSyncResponse{Stdout: stdout, Stderr: stderr}
	if exit, ok := errors.AsType[utilexec.ExitError](err); ok && exit.Exited() {
		resp.ExitCode, err = int32(exit.ExitStatus()), nil
	}
	return resp, err
}

// seconds converts seconds to a Duration, limited to the valid range.
func seconds(n int64) time.Duration {
	return time.Duration(max(min(n, math.MaxInt64/int64(time.Second)), 0)) * time.Second
}

func (s *runtimeService) ContainerStats(ctx context.Context, req *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	stats, err := s.runtime.ContainerStats(ctx, req.GetContainerId())
	return &runtimeapi.ContainerStatsResponse{Stats: stats}, err
}

func (s *runtimeService) PodSandboxStats(ctx context.Context, req *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	stats, err := s.runtime.PodSandboxStats(ctx, req.GetPodSandboxId())
	return &runtimeapi.PodSandboxStatsResponse{Stats: stats}, err
}

func (s *runtimeService) ListMetricDescriptors(ctx context.Context, _ *runtimeapi.ListMetricDescriptorsRequest) (*runtimeapi.ListMetricDescriptorsResponse, error) {
	descriptors, err := s.runtime.ListMetricDescriptors(ctx)
	return &runtimeapi.ListMetricDescriptorsResponse{Descriptors: descriptors}, err
}

func (s *runtimeService) CheckpointContainer(ctx context.Context, req *runtimeapi.CheckpointContainerRequest) (*runtimeapi.CheckpointContainerResponse, error) {
	return &runtimeapi.CheckpointContainerResponse{}, s.runtime.CheckpointContainer(ctx, req)
}

func (s *runtimeService) CheckpointPod(ctx context.Context, req *runtimeapi.CheckpointPodRequest) (*runtimeapi.CheckpointPodResponse, error) {
	return &runtimeapi.CheckpointPodResponse{}, s.runtime.CheckpointPod(ctx, req)
}

func (s *runtimeService) RestorePod(ctx context.Context, req *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return s.runtime.RestorePod(ctx, req)
}
