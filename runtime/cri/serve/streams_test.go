package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

// streams implements Streams with functions.
type streams struct {
	exec    func(ctx context.Context, cmd []string, s runtime.Streams) (int32, error)
	attach  func(ctx context.Context, s runtime.Streams) error
	forward func(ctx context.Context, port int32, conn io.ReadWriteCloser) error
}

func (s streams) StreamExec(ctx context.Context, _ string, cmd []string, io runtime.Streams) (int32, error) {
	return s.exec(ctx, cmd, io)
}

func (s streams) StreamAttach(ctx context.Context, _ string, io runtime.Streams) error {
	return s.attach(ctx, io)
}

func (s streams) StreamPortForward(ctx context.Context, _ string, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	return s.forward(ctx, port, conn)
}

// A streamServer is a server with one container, whose stream URLs it requests.
type streamServer struct {
	t                  *testing.T
	client             runtimeapi.RuntimeServiceClient
	sandbox, container string
}

func newStreamServer(t *testing.T, s serve.Streams, change ...func(*serve.Server)) *streamServer {
	t.Helper()
	fake := newFake(t, fakecri.Config{})
	if s == nil {
		s = fake
	}
	h := &streamServer{t: t, sandbox: pod(t, fake, "u")}
	_, err := fake.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "busybox"}, nil, nil)
	require.NoError(t, err)
	h.container, err = fake.CreateContainer(t.Context(), h.sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "busybox"},
	}, sandboxOf("u"))
	require.NoError(t, err)
	require.NoError(t, fake.StartContainer(t.Context(), h.container))
	h.client = runtimeapi.NewRuntimeServiceClient(connect(t, start(t, serve.Config{Runtime: fake, Streams: s}, change...)))
	return h
}

func (h *streamServer) exec(o runtime.StreamOptions, cmd ...string) *url.URL {
	h.t.Helper()
	resp, err := h.client.Exec(h.t.Context(), &runtimeapi.ExecRequest{
		ContainerId: h.container, Cmd: cmd, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY,
	})
	return h.url(resp.GetUrl(), err)
}

func (h *streamServer) attach() *url.URL {
	h.t.Helper()
	resp, err := h.client.Attach(h.t.Context(), &runtimeapi.AttachRequest{ContainerId: h.container, Stdout: true})
	return h.url(resp.GetUrl(), err)
}

func (h *streamServer) forward(ports ...int32) *url.URL {
	h.t.Helper()
	resp, err := h.client.PortForward(h.t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: h.sandbox, Port: ports})
	return h.url(resp.GetUrl(), err)
}

func (h *streamServer) url(raw string, err error) *url.URL {
	h.t.Helper()
	require.NoError(h.t, err)
	u, err := url.Parse(raw)
	require.NoError(h.t, err)
	return u
}

func TestExecPassesInputOutputAndTheCode(t *testing.T) {
	h := newStreamServer(t, streams{exec: func(_ context.Context, cmd []string, s runtime.Streams) (int32, error) {
		in, err := io.ReadAll(s.Stdin)
		fmt.Fprintf(s.Stdout, "%s %s", cmd, in)
		fmt.Fprint(s.Stderr, "oops")
		return int32(len(in)), err
	}})
	for _, in := range []string{"", "hello"} {
		var out, errOut bytes.Buffer
		s := runtime.Streams{Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errOut}
		code, err := new(streaming.Client).Exec(t.Context(), h.exec(s.Options(), "cat", "-"), s)
		require.NoError(t, err)
		assert.EqualValues(t, len(in), code)
		assert.Equal(t, "[cat -] "+in, out.String())
		assert.Equal(t, "oops", errOut.String())
	}
}

func TestExecHasATerminalAndItsSizes(t *testing.T) {
	h := newStreamServer(t, streams{exec: func(ctx context.Context, _ []string, s runtime.Streams) (int32, error) {
		if !s.TTY || s.Stderr != nil || s.Stdin != nil {
			return 0, errors.New("wrong streams")
		}
		for range 2 {
			select {
			case size := <-s.Resize:
				fmt.Fprintf(s.Stdout, "%dx%d ", size.Width, size.Height)
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		return 0, nil
	}})
	var out bytes.Buffer
	sizes := make(chan runtime.TerminalSize, 2)
	sizes <- runtime.TerminalSize{Width: 80, Height: 24}
	sizes <- runtime.TerminalSize{Width: 100, Height: 30}
	s := runtime.Streams{Stdout: &out, TTY: true, Resize: sizes}
	_, err := new(streaming.Client).Exec(t.Context(), h.exec(s.Options(), "sh"), s)
	require.NoError(t, err)
	assert.Equal(t, "80x24 100x30 ", out.String())
}

func TestErrorsOfStreamsReachTheClient(t *testing.T) {
	boom := errors.New("boom")
	h := newStreamServer(t, streams{
		exec:    func(context.Context, []string, runtime.Streams) (int32, error) { return 0, boom },
		attach:  func(context.Context, runtime.Streams) error { return boom },
		forward: func(context.Context, int32, io.ReadWriteCloser) error { return boom },
	})
	client, s := new(streaming.Client), runtime.Streams{Stdout: io.Discard}
	_, err := client.Exec(t.Context(), h.exec(s.Options(), "x"), s)
	assert.ErrorContains(t, err, "boom")
	assert.ErrorContains(t, client.Attach(t.Context(), h.attach(), s), "boom")
	_, theirs := net.Pipe()
	assert.ErrorContains(t, client.PortForward(t.Context(), h.forward(80), 80, theirs), "boom")
}

func TestPortForwardCopiesBothWays(t *testing.T) {
	h := newStreamServer(t, streams{forward: func(_ context.Context, port int32, conn io.ReadWriteCloser) error {
		in := make([]byte, 5)
		if _, err := io.ReadFull(conn, in); err != nil {
			return err
		}
		_, err := fmt.Fprintf(conn, "%d returns %s", port, in)
		return err
	}})
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- new(streaming.Client).PortForward(t.Context(), h.forward(8080), 8080, theirs) }()
	_, err := io.WriteString(ours, "hello")
	require.NoError(t, err)
	got, err := io.ReadAll(ours)
	require.NoError(t, err)
	assert.Equal(t, "8080 returns hello", string(got))
	assert.NoError(t, <-ended)
}

// A stream's context is canceled when its client disconnects or the server ends (the
// cleanup waits for it).
func TestStreamsEndWithTheirClientAndWithTheServer(t *testing.T) {
	running, over := make(chan string), make(chan string)
	until := func(ctx context.Context, what string) error {
		running <- what
		<-ctx.Done()
		over <- what
		return ctx.Err()
	}
	h := newStreamServer(t, streams{
		exec:    func(ctx context.Context, _ []string, _ runtime.Streams) (int32, error) { return 0, until(ctx, "exec") },
		attach:  func(ctx context.Context, _ runtime.Streams) error { return until(ctx, "attach") },
		forward: func(ctx context.Context, _ int32, _ io.ReadWriteCloser) error { return until(ctx, "forward") },
	})
	client, s := new(streaming.Client), runtime.Streams{Stdout: io.Discard}
	begin := map[string]func(context.Context) error{
		"exec": func(ctx context.Context) error {
			_, err := client.Exec(ctx, h.exec(s.Options(), "x"), s)
			return err
		},
		"attach": func(ctx context.Context) error { return client.Attach(ctx, h.attach(), s) },
		"forward": func(ctx context.Context) error {
			_, theirs := net.Pipe()
			return client.PortForward(ctx, h.forward(80), 80, theirs)
		},
	}
	for what, do := range begin {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- do(ctx) }()
		assert.Equal(t, what, <-running)
		cancel()
		assert.Equal(t, what, <-over)
		assert.Error(t, <-ended)
	}
	for _, do := range begin {
		go func() { _ = do(context.Background()) }()
		<-running
	}
	// The server is stopped by the cleanup that was registered before this one.
	go func() {
		for range begin {
			<-over
		}
	}()
}

func TestAURLIsGoodForOneConnectionOfItsKind(t *testing.T) {
	h := newStreamServer(t, streams{exec: func(context.Context, []string, runtime.Streams) (int32, error) { return 0, nil }})
	s := runtime.Streams{Stdout: io.Discard}
	u := h.exec(s.Options(), "x")
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+/exec/[A-Z2-7]{26}$`, u.String())
	_, err := new(streaming.Client).Exec(t.Context(), u, s)
	require.NoError(t, err)
	get := func(u url.URL) int {
		resp, err := http.Get(u.String())
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	assert.Equal(t, http.StatusNotFound, get(*u), "it was used")
	u = h.exec(s.Options(), "x")
	as := *u
	as.Path = strings.Replace(u.Path, "exec", "attach", 1)
	assert.Equal(t, http.StatusNotFound, get(as))
	assert.Equal(t, http.StatusBadRequest, get(*u), "no streams are asked for")
}

func TestInvalidStreamsAreRejected(t *testing.T) {
	h := newStreamServer(t, nil)
	_, err := h.client.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: "absent", Stdout: true})
	assert.Equal(t, codes.NotFound, status.Code(err), "the service is asked first")
	for want, req := range map[string]*runtimeapi.ExecRequest{
		"one of stdin, stdout, or stderr must be set": {ContainerId: h.container},
		"tty and stderr cannot both be true":          {ContainerId: h.container, Tty: true, Stderr: true},
	} {
		_, err := h.client.Exec(t.Context(), req)
		assert.Equal(t, codes.InvalidArgument, status.Code(err))
		assert.ErrorContains(t, err, want)
	}
	for range 1000 {
		_ = h.attach()
	}
	_, err = h.client.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: h.container, Stdout: true})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
}

// A client that connects and disconnects before it opens a stream does not delay the
// end of the server.
func TestAClientThatOpensNoStreamsIsDropped(t *testing.T) {
	var stopped time.Time
	t.Cleanup(func() { assert.Less(t, time.Since(stopped), 90*time.Second) }) // after the server's
	h := newStreamServer(t, streams{}, func(s *serve.Server) { s.SetCreation(time.Hour) })
	u := h.forward(80)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n", u.Path)
	head := make([]byte, 12)
	_, err = io.ReadFull(conn, head)
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 101", string(head))
	conn.Close()
	stopped = time.Now()
}
