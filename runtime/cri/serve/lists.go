package serve

import (
	"context"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Each list is available in one message of at most 16 MiB and as a stream.

func (s *runtimeService) ListPodSandbox(ctx context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	all, err := s.runtime.ListPodSandbox(ctx, req.GetFilter())
	return &runtimeapi.ListPodSandboxResponse{Items: all}, err
}

func (s *runtimeService) StreamPodSandboxes(req *runtimeapi.StreamPodSandboxesRequest, to grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxesResponse]) error {
	all, err := s.runtime.ListPodSandbox(to.Context(), req.GetFilter())
	return inPieces(all, err, func(piece []*runtimeapi.PodSandbox) error {
		return to.Send(&runtimeapi.StreamPodSandboxesResponse{PodSandboxes: piece})
	})
}

func (s *runtimeService) ListContainers(ctx context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	all, err := s.runtime.ListContainers(ctx, req.GetFilter())
	return &runtimeapi.ListContainersResponse{Containers: all}, err
}

func (s *runtimeService) StreamContainers(req *runtimeapi.StreamContainersRequest, to grpc.ServerStreamingServer[runtimeapi.StreamContainersResponse]) error {
	all, err := s.runtime.ListContainers(to.Context(), req.GetFilter())
	return inPieces(all, err, func(piece []*runtimeapi.Container) error {
		return to.Send(&runtimeapi.StreamContainersResponse{Containers: piece})
	})
}

func (s *runtimeService) ListContainerStats(ctx context.Context, req *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	all, err := s.runtime.ListContainerStats(ctx, req.GetFilter())
	return &runtimeapi.ListContainerStatsResponse{Stats: all}, err
}

func (s *runtimeService) StreamContainerStats(req *runtimeapi.StreamContainerStatsRequest, to grpc.ServerStreamingServer[runtimeapi.StreamContainerStatsResponse]) error {
	all, err := s.runtime.ListContainerStats(to.Context(), req.GetFilter())
	return inPieces(all, err, func(piece []*runtimeapi.ContainerStats) error {
		return to.Send(&runtimeapi.StreamContainerStatsResponse{ContainerStats: piece})
	})
}

func (s *runtimeService) ListPodSandboxStats(ctx context.Context, req *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	all, err := s.runtime.ListPodSandboxStats(ctx, req.GetFilter())
	return &runtimeapi.ListPodSandboxStatsResponse{Stats: all}, err
}

func (s *runtimeService) StreamPodSandboxStats(req *runtimeapi.StreamPodSandboxStatsRequest, to grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxStatsResponse]) error {
	all, err := s.runtime.ListPodSandboxStats(to.Context(), req.GetFilter())
	return inPieces(all, err, func(piece []*runtimeapi.PodSandboxStats) error {
		return to.Send(&runtimeapi.StreamPodSandboxStatsResponse{PodSandboxStats: piece})
	})
}

func (s *runtimeService) ListPodSandboxMetrics(ctx context.Context, _ *runtimeapi.ListPodSandboxMetricsRequest) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	all, err := s.runtime.ListPodSandboxMetrics(ctx)
	return &runtimeapi.ListPodSandboxMetricsResponse{PodMetrics: all}, err
}

func (s *runtimeService) StreamPodSandboxMetrics(_ *runtimeapi.StreamPodSandboxMetricsRequest, to grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxMetricsResponse]) error {
	all, err := s.runtime.ListPodSandboxMetrics(to.Context())
	return inPieces(all, err, func(piece []*runtimeapi.PodSandboxMetrics) error {
		return to.Send(&runtimeapi.StreamPodSandboxMetricsResponse{PodSandboxMetrics: piece})
	})
}
