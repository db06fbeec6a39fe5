package unixgrpc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/internal/unixgrpc"
)

// patience is the deadline of what must happen.
const patience = time.Minute

// A service serves both calls; a watch lasts until its client or the server ends it.
type service struct {
	grpc_health_v1.UnimplementedHealthServer
	ended chan error // of watches
}

func (service) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

func (s service) Watch(_ *grpc_health_v1.HealthCheckRequest, to grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	err := to.Send(&grpc_health_v1.HealthCheckResponse{})
	<-to.Context().Done()
	s.ended <- to.Context().Err()
	return err
}

// start runs a server; stop returns the error of Run.
func start(t *testing.T, s unixgrpc.Server) (stop func() error) {
	t.Helper()
	if s.Register == nil {
		s.Register = func(to *grpc.Server) { grpc_health_v1.RegisterHealthServer(to, service{ended: make(chan error, 10)}) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() error {
		cancel()
		select {
		case err := <-done:
			done <- err
			return err
		case <-time.After(patience):
			return errors.New("Run has not returned")
		}
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func connect(t *testing.T, socket string) (*grpc.ClientConn, grpc_health_v1.HealthClient) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn, grpc_health_v1.NewHealthClient(conn)
}

func check(t *testing.T, client grpc_health_v1.HealthClient) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := client.Check(ctx, nil)
	return err
}

// killed leaves a socket as a server does that is killed.
func killed(t *testing.T, path string) {
	t.Helper()
	dead, err := net.Listen("unix", path)
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	_, err = os.Lstat(path)
	require.NoError(t, err)
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	require.NoError(t, os.Mkdir(dir, 0o700))
	socket := filepath.Join(dir, "s")
	killed(t, socket)
	stop := start(t, unixgrpc.Server{Socket: socket})
	_, client := connect(t, socket)
	require.NoError(t, check(t, client))
	info, err := os.Lstat(socket)
	require.NoError(t, err)
	if goruntime.GOOS != "windows" {
		assert.Equal(t, os.ModeSocket|0o660, info.Mode())
	}
	require.NoError(t, stop())
	_, err = os.Lstat(socket)
	assert.ErrorIs(t, err, os.ErrNotExist, "removed at the end")
}

// Whatever is at the path, other than a stale socket, is not modified.
func TestOtherFilesAreNotReplaced(t *testing.T) {
	dir := t.TempDir()
	file, link, dangling, linked := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "socket")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	killed(t, linked)
	require.NoError(t, os.Symlink(linked, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), dangling))
	for _, path := range []string{file, link, dangling, dir} {
		before, err := os.Lstat(path)
		require.NoError(t, err)
		_, err = unixgrpc.Listen(t.Context(), path)
		assert.EqualError(t, err, "listen at "+path+": file exists and is not a socket")
		after, err := os.Lstat(path)
		require.NoError(t, err)
		assert.True(t, os.SameFile(before, after), path)
		assert.Equal(t, before.Mode(), after.Mode(), path)
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(content))
	assert.NoFileExists(t, filepath.Join(dir, "nothing"))

	s := unixgrpc.Server{Socket: filepath.Join(file, "s")}
	assert.Error(t, s.Run(t.Context()), "its directory cannot be created")
	s = unixgrpc.Server{Socket: link}
	assert.Error(t, s.Run(t.Context()))
}

// A second server of a socket fails, and the first continues to serve.
func TestASecondServerFails(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	start(t, unixgrpc.Server{Socket: socket})
	_, client := connect(t, socket)
	require.NoError(t, check(t, client))
	second := unixgrpc.Server{Socket: socket}
	assert.EqualError(t, second.Run(t.Context()), "listen at "+socket+": another server is listening")
	require.NoError(t, check(t, client))
	_, other := connect(t, socket)
	require.NoError(t, check(t, other))
}

// The end of Run is not delayed by open streams and by clients that send nothing, and no
// goroutine is left.
func TestRunEndsAllConnections(t *testing.T) {
	before := goruntime.NumGoroutine()
	socket, ended := filepath.Join(t.TempDir(), "s"), make(chan error, 1)
	called := make(chan string, 10)
	stop := start(t, unixgrpc.Server{
		Socket:   socket,
		Register: func(to *grpc.Server) { grpc_health_v1.RegisterHealthServer(to, service{ended: ended}) },
		Called:   func(method string, _ error) { called <- method },
	})
	first, client := connect(t, socket)
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)
	for _, sent := range []string{"", "PRI * HT", "GET / HTTP/1.1\r\n\r\n"} {
		idle, err := net.Dial("unix", socket)
		require.NoError(t, err)
		defer idle.Close()
		_, err = idle.Write([]byte(sent))
		require.NoError(t, err)
	}
	second, other := connect(t, socket) // is accepted after the others
	require.NoError(t, check(t, other))

	require.NoError(t, stop())
	require.Len(t, ended, 1, "the call has returned before Run")
	assert.ErrorIs(t, <-ended, context.Canceled)
	assert.Equal(t, "/grpc.health.v1.Health/Check", <-called)
	assert.Equal(t, "/grpc.health.v1.Health/Watch", <-called)
	_, err = watch.Recv()
	assert.Equal(t, codes.Unavailable, status.Code(err))

	require.NoError(t, errors.Join(first.Close(), second.Close()))
	for deadline := time.Now().Add(patience); goruntime.NumGoroutine() > before; <-time.After(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%d goroutines, and %d before", goruntime.NumGoroutine(), before)
	}
}

func TestCallsAreLimited(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	var refuses atomic.Bool
	refused := status.Error(codes.FailedPrecondition, "not yet")
	results := make(chan codes.Code, 10)
	start(t, unixgrpc.Server{
		Socket: socket, QPS: 0.001, Burst: 3, Admit: func() error {
			if refuses.Load() {
				return refused
			}
			return nil
		},
		Called: func(_ string, err error) { results <- status.Code(err) },
	})
	_, client := connect(t, socket)
	require.NoError(t, check(t, client))
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: strings.Repeat("x", 65<<10)})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err), "too large, not called")
	refuses.Store(true)
	assert.Equal(t, refused.Error(), check(t, client).Error())
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	assert.Equal(t, refused.Error(), err.Error())
	refuses.Store(false)
	assert.Equal(t, "rejected by rate limit", status.Convert(check(t, client)).Message())
	for _, want := range []codes.Code{codes.OK, codes.FailedPrecondition, codes.FailedPrecondition, codes.ResourceExhausted} {
		assert.Equal(t, want, <-results)
	}
}

func TestServeReturnsTheErrorOfItsListener(t *testing.T) {
	listener, err := unixgrpc.Listen(t.Context(), filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	assert.ErrorIs(t, unixgrpc.Serve(ctx, listener, unixgrpc.Service{Register: func(*grpc.Server) {}}), net.ErrClosed)
	cancel()
	listener, err = unixgrpc.Listen(t.Context(), filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	assert.NoError(t, unixgrpc.Serve(ctx, listener, unixgrpc.Service{Register: func(*grpc.Server) {}}), "a context that is done")
	assert.ErrorIs(t, listener.Close(), net.ErrClosed)
}
