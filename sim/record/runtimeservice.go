package record

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RuntimeService returns a service that records the calls of next and its container events. Metrics,
// which the agent passes on without use, and streams are not recorded.
func (r *Recorder) RuntimeService(next internalapi.RuntimeService) internalapi.RuntimeService {
	return runtimeService{next, r}
}

// A runtimeService records each method that it declares.
type runtimeService struct {
	internalapi.RuntimeService
	r *Recorder
}

// Unwrap implements compose.Wrapper.
func (s runtimeService) Unwrap() any { return s.RuntimeService }

// asMessage is the answer of an RPC that its client returns unchanged.
func asMessage[M proto.Message](m M) proto.Message { return m }

// sorted returns a sorted copy: runtimes return lists in any order.
func sorted[T any](list []T, id func(T) string) []T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(id(a), id(b)) })
	return list
}

func (s runtimeService) Version(ctx context.Context, version string) (*runtimeapi.VersionResponse, error) {
	return record(s.r, "Version", &runtimeapi.VersionRequest{Version: version}, func() (*runtimeapi.VersionResponse, error) {
		return s.RuntimeService.Version(ctx, version)
	}, asMessage[*runtimeapi.VersionResponse])
}

func (s runtimeService) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return record(s.r, "Status", &runtimeapi.StatusRequest{Verbose: verbose}, func() (*runtimeapi.StatusResponse, error) {
		return s.RuntimeService.Status(ctx, verbose)
	}, asMessage[*runtimeapi.StatusResponse])
}

func (s runtimeService) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return record(s.r, "RuntimeConfig", &runtimeapi.RuntimeConfigRequest{}, func() (*runtimeapi.RuntimeConfigResponse, error) {
		return s.RuntimeService.RuntimeConfig(ctx)
	}, asMessage[*runtimeapi.RuntimeConfigResponse])
}

func (s runtimeService) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	return recordDo(s.r, "UpdateRuntimeConfig", &runtimeapi.UpdateRuntimeConfigRequest{RuntimeConfig: config}, func() error { return s.RuntimeService.UpdateRuntimeConfig(ctx, config) })
}

func (s runtimeService) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	return record(s.r, "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler}, func() (string, error) {
		return s.RuntimeService.RunPodSandbox(ctx, config, handler)
	}, func(id string) proto.Message { return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id} })
}

func (s runtimeService) StopPodSandbox(ctx context.Context, id string) error {
	return recordDo(s.r, "StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}, func() error { return s.RuntimeService.StopPodSandbox(ctx, id) })
}

func (s runtimeService) RemovePodSandbox(ctx context.Context, id string) error {
	return recordDo(s.r, "RemovePodSandbox", &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}, func() error { return s.RuntimeService.RemovePodSandbox(ctx, id) })
}

func (s runtimeService) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return record(s.r, "PodSandboxStatus", &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: verbose}, func() (*runtimeapi.PodSandboxStatusResponse, error) {
		return s.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	}, asMessage[*runtimeapi.PodSandboxStatusResponse])
}

func (s runtimeService) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return record(s.r, "ListPodSandbox", &runtimeapi.ListPodSandboxRequest{Filter: filter}, func() ([]*runtimeapi.PodSandbox, error) {
		return s.RuntimeService.ListPodSandbox(ctx, filter)
	}, func(list []*runtimeapi.PodSandbox) proto.Message {
		return &runtimeapi.ListPodSandboxResponse{Items: sorted(list, (*runtimeapi.PodSandbox).GetId)}
	})
}

func (s runtimeService) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return record(s.r, "UpdatePodSandboxResources", req, func() (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		return s.RuntimeService.UpdatePodSandboxResources(ctx, req)
	}, asMessage[*runtimeapi.UpdatePodSandboxResourcesResponse])
}

func (s runtimeService) CheckpointPod(ctx context.Context, req *runtimeapi.CheckpointPodRequest) error {
	return recordDo(s.r, "CheckpointPod", req, func() error { return s.RuntimeService.CheckpointPod(ctx, req) })
}

func (s runtimeService) RestorePod(ctx context.Context, req *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return record(s.r, "RestorePod", req, func() (*runtimeapi.RestorePodResponse, error) {
		return s.RuntimeService.RestorePod(ctx, req)
	}, asMessage[*runtimeapi.RestorePodResponse])
}

func (s runtimeService) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (string, error) {
	return record(s.r, "CreateContainer", &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: pod}, func() (string, error) {
		return s.RuntimeService.CreateContainer(ctx, sandbox, config, pod)
	}, func(id string) proto.Message { return &runtimeapi.CreateContainerResponse{ContainerId: id} })
}

func (s runtimeService) StartContainer(ctx context.Context, id string) error {
	return recordDo(s.r, "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: id}, func() error { return s.RuntimeService.StartContainer(ctx, id) })
}

func (s runtimeService) StopContainer(ctx context.Context, id string, timeout int64) error {
	return recordDo(s.r, "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: timeout}, func() error { return s.RuntimeService.StopContainer(ctx, id, timeout) })
}

func (s runtimeService) RemoveContainer(ctx context.Context, id string) error {
	return recordDo(s.r, "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: id}, func() error { return s.RuntimeService.RemoveContainer(ctx, id) })
}

func (s runtimeService) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return record(s.r, "ListContainers", &runtimeapi.ListContainersRequest{Filter: filter}, func() ([]*runtimeapi.Container, error) {
		return s.RuntimeService.ListContainers(ctx, filter)
	}, func(list []*runtimeapi.Container) proto.Message {
		return &runtimeapi.ListContainersResponse{Containers: sorted(list, (*runtimeapi.Container).GetId)}
	})
}

func (s runtimeService) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	return record(s.r, "ContainerStatus", &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: verbose}, func() (*runtimeapi.ContainerStatusResponse, error) {
		return s.RuntimeService.ContainerStatus(ctx, id, verbose)
	}, asMessage[*runtimeapi.ContainerStatusResponse])
}

func (s runtimeService) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error {
	return recordDo(s.r, "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: id, Linux: resources.GetLinux(), Windows: resources.GetWindows(),
	}, func() error { return s.RuntimeService.UpdateContainerResources(ctx, id, resources) })
}

func (s runtimeService) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return record(s.r, "Exec", req, func() (*runtimeapi.ExecResponse, error) {
		return s.RuntimeService.Exec(ctx, req)
	}, asMessage[*runtimeapi.ExecResponse])
}

func (s runtimeService) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return record(s.r, "Attach", req, func() (*runtimeapi.AttachResponse, error) {
		return s.RuntimeService.Attach(ctx, req)
	}, asMessage[*runtimeapi.AttachResponse])
}

func (s runtimeService) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return record(s.r, "PortForward", req, func() (*runtimeapi.PortForwardResponse, error) {
		return s.RuntimeService.PortForward(ctx, req)
	}, asMessage[*runtimeapi.PortForwardResponse])
}

func (s runtimeService) ReopenContainerLog(ctx context.Context, id string) error {
	return recordDo(s.r, "ReopenContainerLog", &runtimeapi.ReopenContainerLogRequest{ContainerId: id}, func() error { return s.RuntimeService.ReopenContainerLog(ctx, id) })
}

func (s runtimeService) CheckpointContainer(ctx context.Context, req *runtimeapi.CheckpointContainerRequest) error {
	return recordDo(s.r, "CheckpointContainer", req, func() error { return s.RuntimeService.CheckpointContainer(ctx, req) })
}

func (s runtimeService) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	return record(s.r, "ContainerStats", &runtimeapi.ContainerStatsRequest{ContainerId: id}, func() (*runtimeapi.ContainerStats, error) {
		return s.RuntimeService.ContainerStats(ctx, id)
	}, func(s *runtimeapi.ContainerStats) proto.Message { return &runtimeapi.ContainerStatsResponse{Stats: s} })
}

func (s runtimeService) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return record(s.r, "ListContainerStats", &runtimeapi.ListContainerStatsRequest{Filter: filter}, func() ([]*runtimeapi.ContainerStats, error) {
		return s.RuntimeService.ListContainerStats(ctx, filter)
	}, func(list []*runtimeapi.ContainerStats) proto.Message {
		id := func(s *runtimeapi.ContainerStats) string { return s.GetAttributes().GetId() }
		return &runtimeapi.ListContainerStatsResponse{Stats: sorted(list, id)}
	})
}

func (s runtimeService) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	return record(s.r, "PodSandboxStats", &runtimeapi.PodSandboxStatsRequest{PodSandboxId: id}, func() (*runtimeapi.PodSandboxStats, error) {
		return s.RuntimeService.PodSandboxStats(ctx, id)
	}, func(s *runtimeapi.PodSandboxStats) proto.Message {
		return &runtimeapi.PodSandboxStatsResponse{Stats: s}
	})
}

func (s runtimeService) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return record(s.r, "ListPodSandboxStats", &runtimeapi.ListPodSandboxStatsRequest{Filter: filter}, func() ([]*runtimeapi.PodSandboxStats, error) {
		return s.RuntimeService.ListPodSandboxStats(ctx, filter)
	}, func(list []*runtimeapi.PodSandboxStats) proto.Message {
		id := func(s *runtimeapi.PodSandboxStats) string { return s.GetAttributes().GetId() }
		return &runtimeapi.ListPodSandboxStatsResponse{Stats: sorted(list, id)}
	})
}

func (s runtimeService) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	request := &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: cmd, Timeout: int64(timeout / time.Second)}
	_, err = record(s.r, "ExecSync", request, func() (_ struct{}, err error) {
		stdout, stderr, err = s.RuntimeService.ExecSync(ctx, id, cmd, timeout)
		return struct{}{}, err
	}, func(struct{}) proto.Message { return &runtimeapi.ExecSyncResponse{Stdout: stdout, Stderr: stderr} })
	return stdout, stderr, err
}
