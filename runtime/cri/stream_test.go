package cri_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// serving is a runtime with a server of streams.
type serving struct {
	*fakeCRI
	url  string
	fail error
	last string // the last request
}

func (s *serving) Exec(_ context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	s.last = fmt.Sprint("exec ", req.ContainerId, req.Cmd, req.Stdin, req.Stdout, req.Stderr, req.Tty)
	return &runtimeapi.ExecResponse{Url: s.url}, s.fail
}

func (s *serving) Attach(_ context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	s.last = fmt.Sprint("attach ", req.ContainerId, req.Stdin, req.Stdout, req.Stderr, req.Tty)
	return &runtimeapi.AttachResponse{Url: s.url}, s.fail
}

func (s *serving) PortForward(_ context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	s.last = fmt.Sprint("forward ", req.PodSandboxId, req.Port)
	return &runtimeapi.PortForwardResponse{Url: s.url}, s.fail
}

// streamer records the URLs that it connects to.
type streamer struct{ to []string }

func (s *streamer) Exec(_ context.Context, u *url.URL, _ runtime.Streams) (int32, error) {
	s.to = append(s.to, "exec "+u.String())
	return 3, nil
}

func (s *streamer) Attach(_ context.Context, u *url.URL, _ runtime.Streams) error {
	s.to = append(s.to, "attach "+u.String())
	return nil
}

func (s *streamer) PortForward(_ context.Context, u *url.URL, port int32, _ io.ReadWriteCloser) error {
	s.to = append(s.to, fmt.Sprint("forward ", port, " ", u))
	return nil
}

func TestStreamsAreConnectedAtTheRuntimesURL(t *testing.T) {
	f := newFake()
	f.has("img:1")
	s := &serving{fakeCRI: f, url: "http://127.0.0.1:1/token"}
	over := new(streamer)
	rt, err := cri.New(cri.Config{
		Name: "fake", Runtime: s, Images: f, Calls: cri.CallConfig{Streams: over}, Dirs: cri.Dirs{Root: t.TempDir(), PodLogs: t.TempDir()},
	})
	require.NoError(t, err)
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	in := strings.NewReader("")

	code, err := rt.StreamExec(t.Context(), "fake://c9", []string{"sh", "-c"}, runtime.Streams{Stdin: in, Stdout: io.Discard, Stderr: io.Discard})
	require.NoError(t, err)
	assert.EqualValues(t, 3, code)
	assert.Equal(t, "exec c9[sh -c] true true true false", s.last)

	// A terminal has one output, and the CRI requires at least one stream.
	_, err = rt.StreamExec(t.Context(), "fake://c9", nil, runtime.Streams{Stderr: io.Discard, TTY: true})
	require.NoError(t, err)
	assert.Equal(t, "exec c9[] false true false true", s.last)
	require.NoError(t, rt.Attach(t.Context(), "fake://c9", runtime.Streams{}))
	assert.Equal(t, "attach c9false true false false", s.last)

	ours, theirs := net.Pipe()
	require.NoError(t, rt.PortForward(t.Context(), pod.UID, 80, theirs))
	assert.Equal(t, "forward "+f.sandboxes()[0].ID+"[80]", s.last)
	_, err = ours.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the connection was closed")
	assert.Equal(t, []string{
		"exec http://127.0.0.1:1/token", "exec http://127.0.0.1:1/token",
		"attach http://127.0.0.1:1/token", "forward 80 http://127.0.0.1:1/token",
	}, over.to)

	u, err := rt.PortForwardURL(t.Context(), pod.UID, []int32{80, 443})
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:1/token", u.String())
	assert.Equal(t, "forward "+f.sandboxes()[0].ID+"[80 443]", s.last)
	_, err = rt.ExecURL(t.Context(), "fake://c9", []string{"x"}, runtime.StreamOptions{Stdout: true, Stderr: true, TTY: true})
	require.NoError(t, err)
	assert.Equal(t, "exec c9[x] false true false true", s.last, "stderr is not requested with a terminal")
}

func TestStreamsThatFail(t *testing.T) {
	f := newFake()
	f.has("img:1")
	s := &serving{fakeCRI: f, url: "http://127.0.0.1:1/token"}
	engine := func(streams cri.Streamer) *cri.Runtime {
		rt, err := cri.New(cri.Config{Name: "fake", Runtime: s, Images: f, Calls: cri.CallConfig{Streams: streams}, Dirs: cri.Dirs{Root: t.TempDir(), PodLogs: t.TempDir()}})
		require.NoError(t, err)
		return rt
	}
	rt, without := engine(new(streamer)), engine(nil)
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	forward := func(rt *cri.Runtime, port int32) error {
		ours, theirs := net.Pipe()
		err := rt.PortForward(t.Context(), pod.UID, port, theirs)
		_, eof := ours.Read(make([]byte, 1))
		require.ErrorIs(t, eof, io.EOF, "the connection is closed in any case")
		return err
	}

	// Without a streams client, the URLs are still available.
	_, err := without.StreamExec(t.Context(), "c", nil, runtime.Streams{})
	require.ErrorIs(t, err, runtime.ErrUnsupported)
	require.ErrorIs(t, without.Attach(t.Context(), "c", runtime.Streams{}), runtime.ErrUnsupported)
	require.ErrorIs(t, forward(without, 80), runtime.ErrUnsupported)
	_, err = without.AttachURL(t.Context(), "c", runtime.StreamOptions{})
	require.NoError(t, err)

	for _, bad := range []string{"", "::", "/exec/secret", "%zz"} {
		s.url = bad
		_, err = rt.StreamExec(t.Context(), "c", nil, runtime.Streams{})
		require.ErrorContains(t, err, "no URL for exec", bad)
		assert.NotContains(t, err.Error(), "secret")
		require.ErrorContains(t, forward(rt, 80), "no URL for port-forward")
	}
	s.fail = status.Error(codes.NotFound, "no such container")
	_, err = rt.StreamExec(t.Context(), "c", nil, runtime.Streams{})
	require.ErrorIs(t, err, runtime.ErrNotFound)
	require.ErrorIs(t, rt.Attach(t.Context(), "c", runtime.Streams{}), runtime.ErrNotFound)

	require.ErrorContains(t, forward(rt, 0), "invalid port")
	require.ErrorContains(t, forward(rt, 65536), "invalid port")
	require.NoError(t, f.mem.KillSandbox(string(pod.UID)))
	require.ErrorContains(t, forward(rt, 80), "not ready")
	_, err = rt.PortForwardURL(t.Context(), "another", nil)
	require.ErrorIs(t, err, runtime.ErrNotFound)
	_, err = rt.PortForwardURL(t.Context(), "", nil)
	require.ErrorContains(t, err, "no pod UID")
}

// A runtime in this process needs no server.
type local struct{ *fakeCRI }

func (local) StreamExec(_ context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	fmt.Fprint(s.Stdout, id, cmd)
	return 4, nil
}

func (local) StreamAttach(context.Context, string, runtime.Streams) error {
	return status.Error(codes.Unimplemented, "it cannot be")
}

func (local) StreamPortForward(_ context.Context, sandbox string, port int32, _ io.ReadWriteCloser) error {
	return fmt.Errorf("%s:%d: %w", sandbox, port, errors.ErrUnsupported)
}

func TestStreamsOfALocalRuntime(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: local{f}, Images: f, Dirs: cri.Dirs{Root: t.TempDir(), PodLogs: t.TempDir()}})
	require.NoError(t, err)
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	var out strings.Builder
	code, err := rt.StreamExec(t.Context(), "fake://c1", []string{"a", "b"}, runtime.Streams{Stdout: &out})
	require.NoError(t, err)
	assert.EqualValues(t, 4, code)
	assert.Equal(t, "c1[a b]", out.String())
	require.ErrorIs(t, rt.Attach(t.Context(), "fake://c1", runtime.Streams{}), runtime.ErrUnsupported)
	_, theirs := net.Pipe()
	err = rt.PortForward(t.Context(), pod.UID, 80, theirs)
	require.ErrorIs(t, err, runtime.ErrUnsupported)
	require.ErrorContains(t, err, f.sandboxes()[0].ID+":80")
}
