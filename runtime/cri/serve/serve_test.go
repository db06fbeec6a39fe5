package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// start serves until the test ends, and returns the path of the socket.
func start(t *testing.T, cfg serve.Config, change ...func(*serve.Server)) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	var err error
	cfg.Listener, err = serve.Listen(t.Context(), "unix://"+socket)
	require.NoError(t, err)
	server, err := serve.New(cfg)
	require.NoError(t, err)
	for _, to := range change {
		to(server)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoFileExists(t, socket)
	})
	return socket
}

func newFake(t *testing.T, cfg fakecri.Config) *fakecri.Runtime {
	t.Helper()
	fake, err := fakecri.New(cfg)
	require.NoError(t, err)
	return fake
}

// connect returns a plain gRPC connection, without the official client.
func connect(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(32<<20)))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Every call is forwarded: with a service that returns one error for all calls, none
// returns Unimplemented.
func TestEveryCallOfTheCRIIsPassedOn(t *testing.T) {
	fake := newFake(t, fakecri.Config{Faults: fake.Always(fake.Fault{Err: status.Error(codes.Aborted, "passed on")})})
	conn := connect(t, start(t, serve.Config{Runtime: fake, Images: fake, Streams: fake}))
	calls := 0
	for _, name := range []protoreflect.FullName{"runtime.v1.RuntimeService", "runtime.v1.ImageService"} {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		require.NoError(t, err)
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			method := methods.Get(i)
			if ofSecurityProfiles(string(method.Name())) {
				assert.Contains(t, call(t, conn, method), "Unimplemented", "%s", method.Name())
				continue
			}
			calls++
			assert.Equal(t, "Aborted: passed on", call(t, conn, method), "%s", method.Name())
		}
	}
	assert.Greater(t, calls, 40)
}

// call makes a call with an empty request and returns the error.
func call(t *testing.T, conn *grpc.ClientConn, method protoreflect.MethodDescriptor) string {
	t.Helper()
	message := func(d protoreflect.MessageDescriptor) any {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
		require.NoError(t, err)
		return kind.New().Interface()
	}
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	req, resp := message(method.Input()), message(method.Output())
	var err error
	if method.IsStreamingServer() {
		var stream grpc.ClientStream
		stream, err = conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, path)
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(req))
		require.NoError(t, stream.CloseSend())
		err = stream.RecvMsg(resp)
	} else {
		err = conn.Invoke(t.Context(), path, req, resp)
	}
	return fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
}

func TestErrorsKeepTheirCodes(t *testing.T) {
	var fault error
	fake := newFake(t, fakecri.Config{Faults: func(fake.Call) fake.Fault { return fake.Fault{Err: fault} }})
	seen := make(chan string, 10)
	socket := start(t, serve.Config{Runtime: fake, Called: func(c serve.CallInfo) { seen <- fmt.Sprintf("%s %t", c.Method, c.Err != nil) }})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, socket))
	for want, err := range map[codes.Code]error{
		codes.NotFound:         status.Error(codes.NotFound, "boom"),
		codes.Unavailable:      fmt.Errorf("wrapped: %w", status.Error(codes.Unavailable, "boom")),
		codes.Unknown:          errors.New("boom"),
		codes.DeadlineExceeded: fmt.Errorf("boom: %w", context.DeadlineExceeded),
		codes.Canceled:         fmt.Errorf("boom: %w", context.Canceled),
		codes.Unimplemented:    fmt.Errorf("boom: %w", errors.ErrUnsupported),
	} {
		fault = err
		_, got := client.Status(t.Context(), &runtimeapi.StatusRequest{})
		assert.Equal(t, want, status.Code(got), "%v", got)
		assert.ErrorContains(t, got, "boom")
		assert.Equal(t, "Status true", <-seen)
	}
	fault = nil
	_, err := client.Version(t.Context(), &runtimeapi.VersionRequest{})
	require.NoError(t, err)
	assert.Equal(t, "Version false", <-seen)
}

// Without Config.Images, the image service is not registered.
func TestServicesThatAreNotGivenAreUnimplemented(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	conn := connect(t, start(t, serve.Config{Runtime: fake}))
	_, err := runtimeapi.NewImageServiceClient(conn).ListImages(t.Context(), &runtimeapi.ListImagesRequest{})
	assert.Equal(t, codes.Unimplemented, status.Code(err))
	_, err = runtimeapi.NewRuntimeServiceClient(conn).PortForward(t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: pod(t, fake, "u")})
	assert.Equal(t, codes.Unimplemented, status.Code(err), "no Streams: the service's refusal stands")
}

// pod creates a sandbox.
func pod(t *testing.T, fake *fakecri.Runtime, uid string) string {
	t.Helper()
	id, err := fake.RunPodSandbox(t.Context(), sandboxOf(uid), "")
	require.NoError(t, err)
	return id
}

func sandboxOf(uid string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Namespace: "ns", Uid: uid}}
}

// A list that exceeds one message can be streamed.
func TestAListOfMoreThan16MiBCanBeHadInPieces(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	for i := range 80 {
		config := sandboxOf(fmt.Sprint(i))
		config.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10)}
		_, err := fake.RunPodSandbox(t.Context(), config, "")
		require.NoError(t, err)
	}
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake})))
	_, err := client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))

	stream, err := client.StreamPodSandboxes(t.Context(), &runtimeapi.StreamPodSandboxesRequest{})
	require.NoError(t, err)
	pods, pieces := 0, 0
	for {
		piece, err := stream.Recv()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		pods, pieces = pods+len(piece.PodSandboxes), pieces+1
	}
	assert.Equal(t, 80, pods)
	assert.Greater(t, pieces, 20)

	big := sandboxOf("big") // requests have a limit too
	big.Annotations = map[string]string{"a": strings.Repeat("x", 17<<20)}
	_, err = client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: big})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	big.Annotations["a"] = strings.Repeat("x", 15<<20)
	_, err = client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: big})
	assert.NoError(t, err)
}

func TestEventsAreStreamedFromTheHeaderOn(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake})))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	require.NoError(t, err)
	_, err = stream.Header() // from now on none is missed
	require.NoError(t, err)
	id := pod(t, fake, "u")
	for _, kind := range []runtimeapi.ContainerEventType{
		runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
	} {
		event, err := stream.Recv()
		require.NoError(t, err)
		assert.Equal(t, kind, event.ContainerEventType)
		assert.Equal(t, id, event.ContainerId)
	}
	fake.Down()
	_, err = stream.Recv()
	assert.Equal(t, codes.Unavailable, status.Code(err), "the error of the service when it ends")
	fake.Up()

	// A stream also ends when its client disconnects: the cleanup waits for it.
	stream, err = client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	require.NoError(t, err)
	_, err = stream.Header()
	require.NoError(t, err)
	cancel()
	_, err = stream.Recv()
	assert.Equal(t, codes.Canceled, status.Code(err))
}

func TestNewNamesTheMissingField(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	for want, cfg := range map[string]serve.Config{
		"serve: Config.Listener is nil":                                      {Runtime: fake},
		"serve: Config.Runtime is nil":                                       {Listener: listener},
		"serve: Config.StreamAddr: address nowhere: missing port in address": {Listener: listener, Runtime: fake, StreamAddr: "nowhere"},
	} {
		_, err := serve.New(cfg)
		assert.EqualError(t, err, want)
	}
}

func TestListenReplacesTheSocketOfTheDeadOnly(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	dead, err := net.Listen("unix", socket)
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false) // as one that was killed
	require.NoError(t, dead.Close())
	require.FileExists(t, socket)

	live, err := serve.Listen(t.Context(), socket)
	require.NoError(t, err)
	_, err = serve.Listen(t.Context(), "unix://"+socket)
	assert.EqualError(t, err, "serve: listen at "+socket+": another server is listening")
	require.NoError(t, live.Close())
	assert.NoFileExists(t, socket)

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	for endpoint, want := range map[string]string{
		file:                                 "file exists and is not a socket",
		"":                                   `serve: listen at "": no path`,
		"tcp://127.0.0.1:1":                  "not a unix socket",
		"unix://" + strings.Repeat("a", 104): "path has 104 bytes, maximum is 103",
		filepath.Join(dir, "no", "s"):        "no such file or directory",
	} {
		_, err := serve.Listen(t.Context(), endpoint)
		assert.ErrorContains(t, err, want)
	}
	assert.FileExists(t, file)
}

func TestRunFailsIfAListenerDoes(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	server, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Streams: fake})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.ErrorContains(t, server.Run(ctx), "serve: accept clients: ")

	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, err = serve.New(serve.Config{Listener: listener, Runtime: fake, Streams: fake, StreamAddr: busy.Addr().String()})
	require.NoError(t, err)
	assert.ErrorContains(t, server.Run(ctx), "serve: listen for streams: ")
}
