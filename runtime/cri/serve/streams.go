package serve

import (
	"context"
	"net/url"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exec calls the service first, which returns its errors for unknown containers and
// those that do not run.
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

// Attach works like Exec.
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

// PortForward works like Exec.
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

// mine reports whether a stream for which the service returned err is served here.
func (s *runtimeService) mine(err error) bool { return s.host != "" && isUnsupported(err) }

// url returns a URL for the requested stream.
func (s *runtimeService) url(what string, req any) (string, error) {
	path, err := s.urls.issue(what, req)
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "http", Host: s.host, Path: path}
	return u.String(), nil
}

// checkStreams returns the errors of the CRI's streaming library for invalid
// combinations.
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
