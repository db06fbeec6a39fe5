package serve_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Clients that connect to the socket or to the address of streams, and send nothing or
// an incomplete request, do not delay the end of Run.
func TestIdleClientsDoNotDelayTheEndOfRun(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := serve.Listen(t.Context(), socket)
	require.NoError(t, err)
	server, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Streams: fake})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	for _, sent := range []string{"", "PRI * HT", "GET / HTTP/1.1\r\n\r\n"} {
		conn, err := net.Dial("unix", socket)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte(sent))
		require.NoError(t, err)
	}
	client := runtimeapi.NewRuntimeServiceClient(connect(t, socket))
	_, err = client.Version(t.Context(), &runtimeapi.VersionRequest{}) // they were let in before it
	require.NoError(t, err)
	begun := time.Now()
	stop()
	assert.NoError(t, <-ended)
	assert.Less(t, time.Since(begun), time.Minute)
}

// An eager runtime sends events as soon as it has called ready.
type eager struct {
	internalapi.RuntimeService
}

func (eager) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, ready func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	ready(nil)
	for range 3 {
		select {
		case events <- &runtimeapi.ContainerEventResponse{ContainerId: "c"}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return status.Error(codes.Aborted, "the end")
}

func TestEventsSentAtOnceAreAllForwarded(t *testing.T) {
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: eager{}})))
	for range 1000 {
		stream, err := client.GetContainerEvents(t.Context(), &runtimeapi.GetEventsRequest{})
		require.NoError(t, err)
		for range 3 {
			_, err := stream.Recv()
			require.NoError(t, err)
		}
		_, err = stream.Recv()
		assert.Equal(t, codes.Aborted, status.Code(err), "%v", err)
	}
}

func TestAnOverflowingTimeoutIsUnlimited(t *testing.T) {
	fake := newFake(t, fakecri.Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
		"web": {Commands: []fake.Command{{Takes: 500 * time.Millisecond, Stdout: "done"}}},
	}}})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake, Images: fake})))
	_, id := running(t, fake, "web")
	for _, seconds := range []int64{18446744074 /* 2^64 ns and some */, 1 << 62, -1, -1 << 63} {
		resp, err := client.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"x"}, Timeout: seconds})
		require.NoError(t, err, "%d", seconds)
		assert.Equal(t, "done", string(resp.Stdout))
	}
}

// running creates and starts a container.
func running(t *testing.T, fake *fakecri.Runtime, name string) (sandbox, id string) {
	t.Helper()
	image := &runtimeapi.ImageSpec{Image: "busybox"}
	_, err := fake.PullImage(t.Context(), image, nil, nil)
	require.NoError(t, err)
	sandbox, err = fake.RunPodSandbox(t.Context(), sandboxOf("u-"+name), "")
	require.NoError(t, err)
	id, err = fake.CreateContainer(t.Context(), sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: image,
	}, sandboxOf("u-"+name))
	require.NoError(t, err)
	require.NoError(t, fake.StartContainer(t.Context(), id))
	return sandbox, id
}

func TestAThousandCallsAtOnceEachHaveTheirAnswer(t *testing.T) {
	fake := newFake(t, fakecri.Config{Faults: fake.On(fake.Always(fake.Fault{Delay: 200 * time.Millisecond}), "RunPodSandbox")})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake, Images: fake})))
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			uid := "u" + strings.Repeat("i", i)
			resp, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: sandboxOf(uid)})
			if !assert.NoError(t, err) {
				return
			}
			st, err := client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: resp.PodSandboxId})
			if assert.NoError(t, err) {
				assert.Equal(t, uid, st.Status.Metadata.Uid)
			}
		})
	}
	all.Wait()
	assert.Len(t, fake.Sandboxes(""), 1000)
}

// A message may have 16 MiB in either direction. A larger one fails with a code, and
// does not affect the connection.
func TestAMessageThatIsTooLargeFailsAlone(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake, Images: fake})))
	run := func(uid string, size int) error {
		cfg := sandboxOf(uid)
		cfg.Annotations = map[string]string{"note": strings.Repeat("x", size)}
		_, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: cfg})
		return err
	}
	require.NoError(t, run("a", 10<<20))
	assert.Equal(t, codes.ResourceExhausted, status.Code(run("b", 17<<20)))
	_, err := client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	require.NoError(t, run("c", 10<<20))
	_, err = client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	stream, err := client.StreamPodSandboxes(t.Context(), &runtimeapi.StreamPodSandboxesRequest{})
	require.NoError(t, err)
	for range 2 {
		resp, err := stream.Recv()
		require.NoError(t, err)
		assert.Len(t, resp.PodSandboxes, 1)
	}
}

// The stream of a client that does not read its events is closed, and does not delay
// other calls.
func TestASlowEventReaderDoesNotDelayOthers(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	ended := make(chan error, 1)
	socket := start(t, serve.Config{Runtime: fake, Images: fake, Called: func(c serve.CallInfo) {
		if c.Method == "GetContainerEvents" {
			ended <- c.Err
		}
	}})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, socket))
	stream, err := client.GetContainerEvents(t.Context(), &runtimeapi.GetEventsRequest{})
	require.NoError(t, err)
	_, err = stream.Header()
	require.NoError(t, err)
	note := map[string]string{"note": strings.Repeat("x", 1000)} // what waits in the connection is 64 KiB
	for i := range 6000 {
		cfg := sandboxOf("u")
		cfg.Metadata.Attempt, cfg.Annotations = uint32(i), note
		id, err := fake.RunPodSandbox(t.Context(), cfg, "")
		require.NoError(t, err)
		require.NoError(t, fake.RemovePodSandbox(t.Context(), id))
	}
	for {
		if _, err = stream.Recv(); err != nil {
			break
		}
	}
	assert.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	assert.Equal(t, codes.ResourceExhausted, status.Code(<-ended))
}

func TestRunningCallsAreCanceledAtTheEnd(t *testing.T) {
	fake := newFake(t, fakecri.Config{Faults: fake.On(fake.Always(fake.Fault{Hang: true}), "RunPodSandbox")})
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := serve.Listen(t.Context(), socket)
	require.NoError(t, err)
	begun := make(chan struct{}, 100)
	server, err := serve.New(serve.Config{Listener: listener, Runtime: &announcing{fake, begun}, Images: fake, Streams: fake})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	client := runtimeapi.NewRuntimeServiceClient(connect(t, socket))
	failed := make(chan error, 100)
	for range 100 {
		go func() {
			_, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: sandboxOf("u")})
			failed <- err
		}()
	}
	for range 100 {
		<-begun
	}
	stop()
	require.NoError(t, <-ended)
	for range 100 {
		assert.Error(t, <-failed)
	}
}

// announcing reports the start of each RunPodSandbox on begun.
type announcing struct {
	internalapi.RuntimeService
	begun chan struct{}
}

func (a *announcing) RunPodSandbox(ctx context.Context, cfg *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	a.begun <- struct{}{}
	return a.RuntimeService.RunPodSandbox(ctx, cfg, handler)
}

// A request for a stream with an unknown URL, or with an unsupported protocol, is
// rejected with an HTTP status.
func TestInvalidStreamRequestsAreRejected(t *testing.T) {
	fake := newFake(t, fakecri.Config{})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake, Images: fake, Streams: fake})))
	_, id := running(t, fake, "web")
	resp, err := client.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"x"}, Stdout: true})
	require.NoError(t, err)
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for url, want := range map[string]int{
		resp.Url + "x": http.StatusNotFound,
		strings.Replace(resp.Url, "/exec/", "/attach/", 1): http.StatusNotFound,
		resp.Url: http.StatusBadRequest, // no upgrade
	} {
		got, err := web.Get(url)
		require.NoError(t, err)
		got.Body.Close()
		assert.Equal(t, want, got.StatusCode, url)
	}
	got, err := web.Get(resp.Url)
	require.NoError(t, err)
	got.Body.Close()
	assert.Equal(t, http.StatusNotFound, got.StatusCode, "it is good for one connection")
}

func TestListenRequiresAPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, endpoint := range []string{":1234", "localhost:1234", "unix:s", "s", "tcp://127.0.0.1:1", "unix://", ""} {
		_, err := serve.Listen(t.Context(), endpoint)
		assert.ErrorContains(t, err, fmt.Sprintf("serve: listen at %q: ", endpoint))
	}
	for _, endpoint := range []string{"unix://s", "./s"} {
		listener, err := serve.Listen(t.Context(), endpoint)
		require.NoError(t, err)
		require.NoError(t, listener.Close())
	}
}

// A client can cancel a port forward while its own connection does not read
// data.
func TestAForwardThatIsNotReadCanBeCanceled(t *testing.T) {
	fake := newFake(t, fakecri.Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
		"web": {Endpoints: []fake.Endpoint{{Port: 80, HTTP: true}}},
	}}})
	client := runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake, Images: fake, Streams: fake})))
	sandbox, _ := running(t, fake, "web")
	resp, err := client.PortForward(t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox})
	require.NoError(t, err)
	u, err := url.Parse(resp.Url)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	ended := make(chan error, 1)
	go func() { ended <- new(streaming.Client).PortForward(ctx, u, 80, theirs) }()
	_, err = io.WriteString(ours, "GET / HTTP/1.1\r\nHost: pod\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadFull(ours, make([]byte, 4)) // the response has begun, and the rest of it blocks
	require.NoError(t, err)
	cancel()
	assert.Error(t, <-ended)
}
