package simcri

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// services are the two services of the CRI for one agent. The calls that an engine makes
// to run pods go through the agent.
type services struct {
	internalapi.RuntimeService
	internalapi.ImageManagerService
	machine *machine
	agent   *sim.Agent
}

// An imageService is the image service of services.
type imageService struct{ *services }

func (s *services) images() internalapi.ImageManagerService { return imageService{s} }

// Close implements both services.
func (s *services) Close(context.Context) error { return nil }

// callAgent makes a call through the agent.
func callAgent[T any](ctx context.Context, s *services, call sim.Call, do func() (T, error)) (T, error) {
	var out, none T
	err := s.agent.Call(ctx, call, func() (err error) {
		out, err = do()
		return err
	})
	if err != nil {
		return none, grpcError(err)
	}
	return out, nil
}

// callAgentErr is callAgent for calls without a result.
func callAgentErr(ctx context.Context, s *services, call sim.Call, do func() error) error {
	_, err := callAgent(ctx, s, call, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// grpcError adds the status code of a gRPC client to the error of a fault or of a context
// that is done.
func grpcError(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, runtime.ErrUnavailable):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	}
	return err
}

// callFor returns the sim.Call for a container or sandbox.
func (s *services) callFor(method, id string) sim.Call {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	return sim.Call{Method: method, UID: s.machine.uids[id], ID: id}
}

// listThroughAgent is callAgent for a list, which may be stale. of is the ID in the
// filter; empty: none.
func listThroughAgent[T any](ctx context.Context, s *services, method, of string, labels map[string]string, do func() ([]T, error)) ([]T, error) {
	var out []T
	call := sim.Call{Method: method, UID: types.UID(labels["io.kubernetes.pod.uid"]), ID: of}
	err := s.agent.List(ctx, call, func(age time.Duration) (err error) {
		s.machine.listing.Lock()
		defer s.machine.listing.Unlock()
		s.machine.age = age
		out, err = do()
		return err
	})
	if err != nil {
		return nil, grpcError(err)
	}
	return out, nil
}

func (s *services) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return callAgent(ctx, s, sim.Call{Method: "Status"}, func() (*runtimeapi.StatusResponse, error) {
		return s.machine.fake.Status(ctx, verbose)
	})
}

func (s *services) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	return callAgent(ctx, s, sim.Call{Method: "RunPodSandbox", UID: types.UID(config.GetMetadata().GetUid())}, func() (string, error) {
		return s.machine.fake.RunPodSandbox(ctx, config, handler)
	})
}

func (s *services) StopPodSandbox(ctx context.Context, id string) error {
	return callAgentErr(ctx, s, s.callFor("StopPodSandbox", id), func() error { return s.machine.fake.StopPodSandbox(ctx, id) })
}

func (s *services) RemovePodSandbox(ctx context.Context, id string) error {
	return callAgentErr(ctx, s, s.callFor("RemovePodSandbox", id), func() error { return s.machine.fake.RemovePodSandbox(ctx, id) })
}

func (s *services) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return callAgent(ctx, s, s.callFor("PodSandboxStatus", id), func() (*runtimeapi.PodSandboxStatusResponse, error) {
		return s.machine.fake.PodSandboxStatus(ctx, id, verbose)
	})
}

func (s *services) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return listThroughAgent(ctx, s, "ListPodSandbox", filter.GetId(), filter.GetLabelSelector(), func() ([]*runtimeapi.PodSandbox, error) {
		return s.machine.fake.ListPodSandbox(ctx, filter)
	})
}

func (s *services) CheckpointPod(ctx context.Context, req *runtimeapi.CheckpointPodRequest) error {
	call := s.callFor("CheckpointPod", req.GetPodSandboxId())
	return callAgentErr(ctx, s, call, func() error {
		err := s.machine.fake.CheckpointPod(ctx, req)
		if err == nil {
			s.agent.RecordCheckpoint(call.UID, req.GetOutputPath())
		}
		return err
	})
}

func (s *services) RestorePod(ctx context.Context, req *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	call := sim.Call{Method: "RestorePod", UID: types.UID(req.GetConfig().GetMetadata().GetUid())}
	return callAgent(ctx, s, call, func() (*runtimeapi.RestorePodResponse, error) {
		answer, err := s.machine.fake.RestorePod(ctx, req)
		if err == nil {
			for _, c := range answer.GetRestoredContainers() {
				s.recordResize(call.UID, c.GetContainerId(), configOf(req, c.GetName()).GetLinux().GetResources())
			}
			s.agent.RecordRestore(call.UID, answer.GetPodSandboxId())
		}
		return answer, err
	})
}

// configOf returns the configuration of a container in a request.
func configOf(req *runtimeapi.RestorePodRequest, name string) *runtimeapi.ContainerConfig {
	for _, c := range req.GetContainerConfigs() {
		if c.GetMetadata().GetName() == name {
			return c
		}
	}
	return nil
}

func (s *services) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	call := s.callFor("CreateContainer", sandbox)
	call.ID += config.GetMetadata().GetName()
	return callAgent(ctx, s, call, func() (string, error) {
		id, err := s.machine.fake.CreateContainer(ctx, sandbox, config, sandboxConfig)
		if err == nil {
			s.recordResize(call.UID, id, config.GetLinux().GetResources())
		}
		return id, err
	})
}

func (s *services) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error {
	call := s.callFor("UpdateContainerResources", id)
	return callAgentErr(ctx, s, call, func() error {
		err := s.machine.fake.UpdateContainerResources(ctx, id, resources)
		if err == nil {
			s.recordResize(call.UID, id, resources.GetLinux())
		}
		return err
	})
}

// recordResize adds the CPU of a container to the trace. It is computed from the CPU
// shares, which are rounded down from the request.
func (s *services) recordResize(uid types.UID, id string, resources *runtimeapi.LinuxContainerResources) {
	const least = 2 // shares of a container without a request
	if shares := resources.GetCpuShares(); shares > least {
		s.agent.RecordResize(uid, name+"://"+id, (shares*1000+1023)/1024)
	}
}

func (s *services) StartContainer(ctx context.Context, id string) error {
	return callAgentErr(ctx, s, s.callFor("StartContainer", id), func() error { return s.machine.fake.StartContainer(ctx, id) })
}

func (s *services) StopContainer(ctx context.Context, id string, timeout int64) error {
	return callAgentErr(ctx, s, s.callFor("StopContainer", id), func() error { return s.machine.fake.StopContainer(ctx, id, timeout) })
}

func (s *services) RemoveContainer(ctx context.Context, id string) error {
	return callAgentErr(ctx, s, s.callFor("RemoveContainer", id), func() error { return s.machine.fake.RemoveContainer(ctx, id) })
}

func (s *services) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return listThroughAgent(ctx, s, "ListContainers", filter.GetId()+filter.GetPodSandboxId(), filter.GetLabelSelector(), func() ([]*runtimeapi.Container, error) {
		return s.machine.fake.ListContainers(ctx, filter)
	})
}

func (s *services) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	return callAgent(ctx, s, s.callFor("ContainerStatus", id), func() (*runtimeapi.ContainerStatusResponse, error) {
		return s.machine.fake.ContainerStatus(ctx, id, verbose)
	})
}

func (s *services) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	call := s.callFor("ExecSync", id)
	err = callAgentErr(ctx, s, call, func() error {
		stdout, stderr, err = s.machine.fake.ExecSync(ctx, id, cmd, timeout)
		if err == nil && sim.IsHook(cmd) {
			s.agent.RecordHook(call.UID, name+"://"+id)
		}
		return err
	})
	return stdout, stderr, err
}

func (s imageService) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return callAgent(ctx, s.services, sim.Call{Method: "ImageStatus", ID: image.GetImage()}, func() (*runtimeapi.ImageStatusResponse, error) {
		return s.machine.fake.ImageStatus(ctx, image, verbose)
	})
}

func (s imageService) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, config *runtimeapi.PodSandboxConfig) (string, error) {
	call := sim.Call{Method: "PullImage", UID: types.UID(config.GetMetadata().GetUid()), ID: image.GetImage()}
	return callAgent(ctx, s.services, call, func() (string, error) { return s.machine.fake.PullImage(ctx, image, auth, config) })
}
