package remote_test

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// A server implements the calls of a CRI runtime that Dial makes; if silent, it does not
// respond.
type server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	silent bool
}

func (s *server) Version(ctx context.Context, _ *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	if s.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "example", RuntimeVersion: "v1", RuntimeApiVersion: "v1"}, nil
}

func (s *server) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil
}

// cri is the set of services on a runtime's socket.
type cri interface {
	runtimeapi.RuntimeServiceServer
	runtimeapi.ImageServiceServer
}

// serve serves s at a socket, until stopped.
func serve(socket string, s cri) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	g := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(g, s)
	runtimeapi.RegisterImageServiceServer(g, s)
	go func() { _ = g.Serve(listener) }()
	return g.Stop, nil
}

func TestDialTakesAPathOrAURL(t *testing.T) {
	skipWindows(t)
	socket := filepath.Join(t.TempDir(), "s")
	stop, err := serve(socket, new(server))
	require.NoError(t, err)
	defer stop()
	for _, endpoint := range []string{socket, "unix://" + socket} {
		client, err := remote.Dial(t.Context(), endpoint, remote.Config{})
		require.NoError(t, err, endpoint)
		require.NoError(t, client.Close(t.Context()))
	}
}

func TestDialNamesTheSocketThatDoesNotAnswer(t *testing.T) {
	skipWindows(t)
	_, err := remote.Dial(t.Context(), "", remote.Config{})
	assert.EqualError(t, err, "remote: endpoint is empty")

	socket := filepath.Join(t.TempDir(), "s")
	stop, err := serve(socket, &server{silent: true})
	require.NoError(t, err)
	defer stop()
	begun := time.Now()
	_, err = remote.Dial(t.Context(), socket, remote.Config{Timeout: 100 * time.Millisecond})
	assert.ErrorContains(t, err, "remote: connect to unix://"+socket, "rt-144")
	assert.Less(t, time.Since(begun), 90*time.Second)
}

func skipWindows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("CRI runtimes listen at named pipes there")
	}
}
