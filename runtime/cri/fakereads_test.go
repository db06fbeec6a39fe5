package cri_test

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a fakeCRI says of what it holds.

func (f *fakeCRI) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, "PodSandboxStatus")
	for _, s := range f.sandboxes {
		if s.id == id {
			options := s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
			return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
				Id: s.id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.created.UnixNano(),
				Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.7", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::7"}}},
				Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
					Options: &runtimeapi.NamespaceOption{
						Network: options.GetNetwork(), Ipc: options.GetIpc(), Pid: options.GetPid(), UsernsOptions: options.GetUsernsOptions(),
					},
				}},
				Labels: s.config.Labels, Annotations: s.config.Annotations,
			}}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no sandbox %q", id)
}

func (f *fakeCRI) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, "ListPodSandbox")
	var list []*runtimeapi.PodSandbox
	for _, s := range f.sandboxes {
		if selects(filter.GetLabelSelector(), s.config.Labels) {
			list = append(list, &runtimeapi.PodSandbox{
				Id: s.id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.created.UnixNano(), Labels: s.config.Labels,
				Annotations: s.config.Annotations,
			})
		}
	}
	return list, nil
}

func selects(want, labels map[string]string) bool {
	for k, v := range want {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func (f *fakeCRI) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, "ListContainers")
	var list []*runtimeapi.Container
	for _, c := range f.containers {
		if selects(filter.GetLabelSelector(), c.config.Labels) {
			list = append(list, &runtimeapi.Container{
				Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.config.Metadata, Image: c.config.Image, ImageRef: c.config.Image.Image,
				State: c.state, CreatedAt: c.created.UnixNano(), Labels: c.config.Labels, Annotations: c.config.Annotations,
			})
		}
	}
	return list, nil
}

func (f *fakeCRI) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, "ContainerStatus")
	c, err := f.find(id)
	if err != nil {
		return nil, err
	}
	s := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.Metadata, State: c.state, CreatedAt: c.created.UnixNano(),
		Image: c.config.Image, ImageRef: c.config.Image.Image, ImageId: c.config.Image.Image,
		Labels: c.config.Labels, Annotations: c.config.Annotations, Mounts: c.config.Mounts,
		LogPath: c.sandbox.config.LogDirectory + "/" + c.config.LogPath,
	}
	if f.reports {
		s.Resources = &runtimeapi.ContainerResources{Linux: c.config.GetLinux().GetResources()}
	}
	if !c.started.IsZero() {
		s.StartedAt = c.started.UnixNano()
	}
	if c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
		s.FinishedAt, s.ExitCode, s.Reason, s.Message = c.ended.UnixNano(), c.code, "Completed", f.said[c.config.Metadata.Name]
		if c.code != 0 {
			s.Reason = "Error"
		}
	}
	return &runtimeapi.ContainerStatusResponse{Status: s}, nil
}
