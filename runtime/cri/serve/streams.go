package serve

import (
	"context"
	"net/url"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exec asks the service for a URL first. It has the chance to say that there is
// no such container, or that it does not run.
func (s *runtimeService) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	resp, err := s.runtime.Exec(ctx, req)
	if !s.mine(err) {
		return resp, err
	}
	if err := checkStreams(req.GetContainerId(), req.GetStdin(), req.GetStdout(), req.GetStderr(), req.GetTty()); err != nil {
		return nil, err
	}
	u, err := s.url("exec", req)
	return &runtimeapi.ExecResponse{Url: u}, err
}

// Attach does as Exec.
func (s *runtimeService) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	resp, err := s.runtime.Attach(ctx, req)
	if !s.mine(err) {
		return resp, err
	}
	if err := checkStreams(req.GetContainerId(), req.GetStdin(), req.GetStdout(), req.GetStderr(), req.GetTty()); err != nil {
		return nil, err
	}
	u, err := s.url("attach", req)
	return &runtimeapi.AttachResponse{Url: u}, err
}

// PortForward does as Exec.
func (s *runtimeService) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	resp, err := s.runtime.PortForward(ctx, req)
	if !s.mine(err) {
		return resp, err
	}
	if req.GetPodSandboxId() == "" {
		return nil, status.Error(codes.InvalidArgument, "missing required pod_sandbox_id")
	}
	u, err := s.url("portforward", req)
	return &runtimeapi.PortForwardResponse{Url: u}, err
}

// mine tells whether a stream that the service answered err for is to be served
// here.
func (s *runtimeService) mine(err error) bool { return s.host != "" && isUnsupported(err) }

// url returns where the stream that was asked for waits for the client.
func (s *runtimeService) url(what string, req any) (string, error) {
	path, err := s.urls.issue(what, req)
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "http", Host: s.host, Path: path}
	return u.String(), nil
}

// checkStreams refuses what the protocol has no way for, as the streaming
// library of the CRI does.
func checkStreams(containerID string, stdin, stdout, stderr, tty bool) error {
	switch {
	case containerID == "":
		return status.Error(codes.InvalidArgument, "missing required container_id")
	case tty && stderr:
		return status.Error(codes.InvalidArgument, "tty and stderr cannot both be true")
	case !stdin && !stdout && !stderr:
		return status.Error(codes.InvalidArgument, "one of stdin, stdout, or stderr must be set")
	}
	return nil
}
