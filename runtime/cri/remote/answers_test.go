package remote_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// rulesServer is a runtime with invalid responses.
type rulesServer struct {
	server
	version          *runtimeapi.VersionResponse // nil: the server's
	authority        atomic.Value
	streamed, listed atomic.Int32
	streams          bool
	sandbox          *runtimeapi.PodSandboxStatus
	container        *runtimeapi.ContainerStatus
}

func (s *rulesServer) Version(ctx context.Context, req *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	if md, ok := metadata.FromIncomingContext(ctx); ok && len(md[":authority"]) > 0 {
		s.authority.Store(md[":authority"][0])
	}
	if s.version != nil {
		return s.version, nil
	}
	return s.server.Version(ctx, req)
}

func (s *rulesServer) RunPodSandbox(context.Context, *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	return &runtimeapi.RunPodSandboxResponse{}, nil
}

func (s *rulesServer) CreateContainer(context.Context, *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	return &runtimeapi.CreateContainerResponse{}, nil
}

func (s *rulesServer) PodSandboxStatus(context.Context, *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	return &runtimeapi.PodSandboxStatusResponse{Status: s.sandbox}, nil
}

func (s *rulesServer) ContainerStatus(context.Context, *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: s.container}, nil
}

func (s *rulesServer) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if req.Timeout > 0 {
		return nil, status.Error(codes.DeadlineExceeded, "timeout exceeded")
	}
	return &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 3}, nil
}

func (s *rulesServer) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	s.listed.Add(1)
	return &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{{Id: "c1"}}}, nil
}

func (s *rulesServer) StreamContainers(_ *runtimeapi.StreamContainersRequest, to grpc.ServerStreamingServer[runtimeapi.StreamContainersResponse]) error {
	s.streamed.Add(1)
	if !s.streams {
		return status.Error(codes.Unimplemented, "unknown method")
	}
	for _, id := range []string{"c1", "c2"} {
		if err := to.Send(&runtimeapi.StreamContainersResponse{Containers: []*runtimeapi.Container{{Id: id}}}); err != nil {
			return err
		}
	}
	return nil
}

func dial(t *testing.T, s *rulesServer, cfg remote.Config) (*remote.Client, error) {
	t.Helper()
	skipWindows(t)
	socket := filepath.Join(t.TempDir(), "s")
	stop, err := serve(socket, s)
	require.NoError(t, err)
	t.Cleanup(stop)
	client, err := remote.Dial(t.Context(), socket, cfg)
	if err == nil {
		t.Cleanup(func() { _ = client.Close(context.Background()) })
	}
	return client, err
}

func TestTheClientKeepsTheRulesOfTheCRI(t *testing.T) {
	s := new(rulesServer)
	client, err := dial(t, s, remote.Config{})
	require.NoError(t, err)
	ctx := t.Context()
	assert.Equal(t, "localhost", s.authority.Load(), "rt-144")
	assert.Equal(t, "example", client.Name, "rt-145")

	_, err = client.Runtime.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{}}, "")
	assert.ErrorContains(t, err, "not set", "rt-147")
	_, err = client.Runtime.CreateContainer(ctx, "s", &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{}}, &runtimeapi.PodSandboxConfig{})
	assert.ErrorContains(t, err, "not set", "rt-147")

	s.sandbox = &runtimeapi.PodSandboxStatus{Id: "s", CreatedAt: 1, Metadata: &runtimeapi.PodSandboxMetadata{Name: "n", Namespace: "ns"}}
	_, err = client.Runtime.PodSandboxStatus(ctx, "s", false)
	assert.ErrorContains(t, err, "Uid", "rt-146")
	s.container = &runtimeapi.ContainerStatus{Id: "c", CreatedAt: 1, Metadata: &runtimeapi.ContainerMetadata{Name: "n"}, Image: &runtimeapi.ImageSpec{Image: "i"}}
	_, err = client.Runtime.ContainerStatus(ctx, "c", false)
	assert.ErrorContains(t, err, "ImageRef", "rt-146")

	_, _, err = client.Runtime.ExecSync(ctx, "c", []string{"x"}, time.Second)
	assert.ErrorContains(t, err, "command timed out", "rt-149")
	stdout, stderr, err := client.Runtime.ExecSync(ctx, "c", []string{"x"}, 0)
	assert.ErrorContains(t, err, "exited with 3", "rt-149")
	assert.Equal(t, "outerr", string(append(stdout, stderr...)), "rt-149")
}

func TestDialRejectsAnIncompleteVersion(t *testing.T) { // rt-145
	_, err := dial(t, &rulesServer{version: &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeVersion: "1", RuntimeApiVersion: "v1"}}, remote.Config{Timeout: 5 * time.Second})
	require.ErrorContains(t, err, "RuntimeName")
}

func TestListsAreStreamedIfTheRuntimeCan(t *testing.T) { // rt-151
	for _, tc := range []struct {
		name             string
		ask, can         bool
		found            int
		streamed, listed int32
	}{
		{"rt-151 not asked for", false, true, 1, 0, 2},
		{"rt-151 streamed", true, true, 2, 2, 0},
		{"rt-151 falls back permanently", true, false, 1, 1, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &rulesServer{streams: tc.can}
			client, err := dial(t, s, remote.Config{StreamLists: tc.ask})
			require.NoError(t, err)
			for range 2 {
				list, err := client.Runtime.ListContainers(t.Context(), nil)
				require.NoError(t, err)
				assert.Len(t, list, tc.found)
			}
			assert.Equal(t, tc.streamed, s.streamed.Load())
			assert.Equal(t, tc.listed, s.listed.Load())
		})
	}
}
