package replay

import (
	"context"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// services are the two services of the CRI. Methods that an agent does not call panic:
// the embedded interface is nil.
type services struct {
	internalapi.RuntimeService
	w *world
}

// An imageService is the image service.
type imageService struct {
	internalapi.ImageManagerService
	w *world
}

func (s services) Close(context.Context) error     { return nil }
func (s imageService) Close(context.Context) error { return nil }

func (s services) Version(ctx context.Context, version string) (*runtimeapi.VersionResponse, error) {
	out := new(runtimeapi.VersionResponse)
	return out, s.w.exchange(ctx, "Version", &runtimeapi.VersionRequest{Version: version}, out)
}

func (s services) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	out := new(runtimeapi.StatusResponse)
	return out, s.w.exchange(ctx, "Status", &runtimeapi.StatusRequest{Verbose: verbose}, out)
}

func (s services) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	out := new(runtimeapi.RuntimeConfigResponse)
	return out, s.w.exchange(ctx, "RuntimeConfig", &runtimeapi.RuntimeConfigRequest{}, out)
}

func (s services) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	return s.w.exchange(ctx, "UpdateRuntimeConfig", &runtimeapi.UpdateRuntimeConfigRequest{RuntimeConfig: config}, new(runtimeapi.UpdateRuntimeConfigResponse))
}

func (s services) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	out := new(runtimeapi.RunPodSandboxResponse)
	err := s.w.exchange(ctx, "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler}, out)
	return out.PodSandboxId, err
}

func (s services) StopPodSandbox(ctx context.Context, id string) error {
	return s.w.exchange(ctx, "StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}, new(runtimeapi.StopPodSandboxResponse))
}

func (s services) RemovePodSandbox(ctx context.Context, id string) error {
	return s.w.exchange(ctx, "RemovePodSandbox", &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}, new(runtimeapi.RemovePodSandboxResponse))
}

func (s services) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	out := new(runtimeapi.PodSandboxStatusResponse)
	return out, s.w.exchange(ctx, "PodSandboxStatus", &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: verbose}, out)
}

func (s services) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	out := new(runtimeapi.ListPodSandboxResponse)
	err := s.w.exchange(ctx, "ListPodSandbox", &runtimeapi.ListPodSandboxRequest{Filter: filter}, out)
	return out.Items, err
}

func (s services) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	out := new(runtimeapi.UpdatePodSandboxResourcesResponse)
	return out, s.w.exchange(ctx, "UpdatePodSandboxResources", req, out)
}

func (s services) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (string, error) {
	out := new(runtimeapi.CreateContainerResponse)
	err := s.w.exchange(ctx, "CreateContainer", &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: pod}, out)
	return out.ContainerId, err
}

func (s services) StartContainer(ctx context.Context, id string) error {
	return s.w.exchange(ctx, "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: id}, new(runtimeapi.StartContainerResponse))
}

func (s services) StopContainer(ctx context.Context, id string, timeout int64) error {
	return s.w.exchange(ctx, "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: timeout}, new(runtimeapi.StopContainerResponse))
}

func (s services) RemoveContainer(ctx context.Context, id string) error {
	return s.w.exchange(ctx, "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: id}, new(runtimeapi.RemoveContainerResponse))
}

func (s services) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	out := new(runtimeapi.ListContainersResponse)
	err := s.w.exchange(ctx, "ListContainers", &runtimeapi.ListContainersRequest{Filter: filter}, out)
	return out.Containers, err
}

func (s services) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	out := new(runtimeapi.ContainerStatusResponse)
	return out, s.w.exchange(ctx, "ContainerStatus", &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: verbose}, out)
}

func (s services) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error {
	request := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: resources.GetLinux(), Windows: resources.GetWindows()}
	return s.w.exchange(ctx, "UpdateContainerResources", request, new(runtimeapi.UpdateContainerResourcesResponse))
}

func (s services) ReopenContainerLog(ctx context.Context, id string) error {
	return s.w.exchange(ctx, "ReopenContainerLog", &runtimeapi.ReopenContainerLogRequest{ContainerId: id}, new(runtimeapi.ReopenContainerLogResponse))
}

func (s services) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	out := new(runtimeapi.ExecSyncResponse)
	err = s.w.exchange(ctx, "ExecSync", &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: cmd, Timeout: int64(timeout / time.Second)}, out)
	return out.Stdout, out.Stderr, err
}

func (s services) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, _ func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return s.w.deliver(ctx, events)
}

func (s imageService) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	out := new(runtimeapi.ListImagesResponse)
	err := s.w.exchange(ctx, "ListImages", &runtimeapi.ListImagesRequest{Filter: filter}, out)
	return out.Images, err
}

func (s imageService) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	out := new(runtimeapi.ImageStatusResponse)
	return out, s.w.exchange(ctx, "ImageStatus", &runtimeapi.ImageStatusRequest{Image: image, Verbose: verbose}, out)
}

func (s imageService) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, pod *runtimeapi.PodSandboxConfig) (string, error) {
	out := new(runtimeapi.PullImageResponse)
	err := s.w.exchange(ctx, "PullImage", &runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: pod}, out)
	return out.ImageRef, err
}

func (s imageService) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	return s.w.exchange(ctx, "RemoveImage", &runtimeapi.RemoveImageRequest{Image: image}, new(runtimeapi.RemoveImageResponse))
}

func (s imageService) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	out := new(runtimeapi.ImageFsInfoResponse)
	return out, s.w.exchange(ctx, "ImageFsInfo", &runtimeapi.ImageFsInfoRequest{}, out)
}
