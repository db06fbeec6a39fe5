//go:build linux || darwin

package process_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestStreamExecPassesInputAndBothOutputs(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	var out, errOut bytes.Buffer
	code, err := n.StreamExec(t.Context(), id, []string{"sh", "-c", "cat; echo oops >&2; exit 7"}, runtime.Streams{
		Stdin: strings.NewReader("hello\n"), Stdout: &out, Stderr: &errOut,
	})
	require.NoError(t, err)
	assert.EqualValues(t, 7, code)
	assert.Equal(t, "hello\n", out.String())
	assert.Equal(t, "oops\n", errOut.String())

	code, err = n.StreamExec(t.Context(), id, []string{"sh", "-c", "echo discarded; cat"}, runtime.Streams{})
	require.NoError(t, err, "without streams there is no input and no output")
	assert.Zero(t, code)

	_, err = n.StreamExec(t.Context(), id, []string{"not-there"}, runtime.Streams{Stdout: &out})
	require.ErrorContains(t, err, `"not-there": not found in PATH`)
	_, err = n.StreamExec(t.Context(), "absent", []string{"true"}, runtime.Streams{})
	assert.Equal(t, codes.NotFound, status.Code(err))
}

// A slow reader receives all output, including that written just before the exit.
func TestStreamExecWaitsForASlowReader(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	slow := &slowWriter{delay: 300 * time.Millisecond}
	code, err := n.StreamExec(t.Context(), id, []string{"sh", "-c", "head -c 100000 /dev/zero"}, runtime.Streams{Stdout: slow})
	require.NoError(t, err)
	assert.Zero(t, code)
	assert.Equal(t, 100000, slow.n)
}

type slowWriter struct {
	n     int
	delay time.Duration
}

func (w *slowWriter) Write(p []byte) (int, error) {
	<-time.After(w.delay)
	w.n += len(p)
	return len(p), nil
}

// A process that a command leaves behind in another session keeps the output open;
// the call does not wait for it.
func TestStreamExecDoesNotWaitForProcessesThatItLeavesBehind(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	var out bytes.Buffer
	begin := time.Now()
	_, err := n.StreamExec(t.Context(), id, []string{"sh", "-c", "set -m; sleep 120 & echo left"}, runtime.Streams{Stdout: &out})
	require.NoError(t, err)
	assert.Equal(t, "left\n", out.String())
	_, err = n.StreamExec(t.Context(), id, []string{"sh", "-c", "(trap '' HUP; sleep 120) & echo left"}, runtime.Streams{Stdout: &out, TTY: true})
	require.NoError(t, err)
	assert.Less(t, time.Since(begin), patience)
}

func TestStreamExecEndsWithItsContextAndItsContainer(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	input, typing := io.Pipe() // an input that never ends
	defer typing.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := n.StreamExec(ctx, id, []string{"sleep", "1000"}, runtime.Streams{Stdin: input, Stdout: io.Discard})
	assert.Equal(t, codes.Canceled, status.Code(err), "%v", err)

	done := make(chan error, 1)
	go func() {
		_, err := n.StreamExec(t.Context(), id, []string{"sleep", "1000"}, runtime.Streams{Stdin: input, TTY: true})
		done <- err
	}()
	<-time.After(50 * time.Millisecond)
	require.NoError(t, n.StopContainer(t.Context(), id, 0))
	assert.Equal(t, codes.FailedPrecondition, status.Code(<-done))
}

// screen collects the output of a terminal, for tests that wait for some of it.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) shows(want string) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.text.String(), want)
	}
}

func TestStreamExecHasATerminal(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	input, typing := io.Pipe()
	var shown screen
	resize := make(chan runtime.TerminalSize, 1)
	resize <- runtime.TerminalSize{Width: 81, Height: 21}
	type end struct {
		code int32
		err  error
	}
	done := make(chan end, 1)
	go func() {
		code, err := n.StreamExec(t.Context(), id, []string{"sh"}, runtime.Streams{Stdin: input, Stdout: &shown, TTY: true, Resize: resize})
		done <- end{code, err}
	}()
	typed := func(line string) {
		_, err := io.WriteString(typing, line+"\n")
		require.NoError(t, err)
	}
	typed("echo term is $TERM; test -t 0 && test -t 2 && echo a ter''minal >&2")
	eventually(t, "a terminal", shown.shows("a terminal"))
	eventually(t, "TERM", shown.shows("term is xterm"))
	// Typed text is echoed as well, but not as the end of a line.
	typed("until stty size | grep '21 81'; do :; done")
	eventually(t, "its size", shown.shows("21 81\r"))
	resize <- runtime.TerminalSize{Width: 99, Height: 33}
	typed("until stty size | grep '33 99'; do :; done")
	eventually(t, "its new size", shown.shows("33 99\r"))
	typed("exit 5")
	got := <-done
	require.NoError(t, got.err)
	assert.EqualValues(t, 5, got.code)
	typing.Close()

	// The end of the input is the end of the shell, as with ^D.
	code, err := n.StreamExec(t.Context(), id, []string{"sh"}, runtime.Streams{Stdin: strings.NewReader("echo x\n"), Stdout: &shown, TTY: true})
	require.NoError(t, err)
	assert.Zero(t, code)
}

func TestStreamAttachIsUnsupported(t *testing.T) {
	n := newNode(t)
	assert.Equal(t, codes.Unimplemented, status.Code(n.StreamAttach(t.Context(), "x", runtime.Streams{})))
}

// echo greets each connection, and writes back the data that it reads.
func echo(t *testing.T, address string) int32 {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen at %s: %v", address, err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, "hello ")
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

func TestPortForwardReachesThePodsAddressAndLoopback(t *testing.T) {
	n := newNode(t)
	sandbox := n.sandbox("pod")
	resp, err := n.PodSandboxStatus(t.Context(), sandbox, false)
	require.NoError(t, err)
	for _, address := range []string{resp.GetStatus().GetNetwork().GetIp(), "127.0.0.1"} {
		port := echo(t, net.JoinHostPort(address, "0"))
		ours, theirs := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- n.StreamPortForward(t.Context(), sandbox, port, theirs) }()
		greeting := make([]byte, 9)
		go func() { _, _ = io.WriteString(ours, "you") }()
		_, err := io.ReadFull(ours, greeting)
		require.NoError(t, err)
		assert.Equal(t, "hello you", string(greeting))
		ours.Close()
		<-done // whether the last words could be written is luck
	}
}

func TestPortForwardFailsWithoutAListenerAndEndsWithItsContext(t *testing.T) {
	n := newNode(t)
	sandbox := n.sandbox("pod")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := int32(listener.Addr().(*net.TCPAddr).Port)

	ctx, cancel := context.WithCancel(t.Context())
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- n.StreamPortForward(ctx, sandbox, port, theirs) }()
	peer, err := listener.Accept() // a peer that sends nothing
	require.NoError(t, err)
	defer peer.Close()
	cancel()
	assert.Equal(t, codes.Canceled, status.Code(<-done))
	_, err = ours.Read(make([]byte, 1))
	require.Error(t, err, "the connection was closed")

	listener.Close()
	_, theirs = net.Pipe()
	require.ErrorContains(t, n.StreamPortForward(t.Context(), sandbox, port, theirs), "refused")
	_, theirs = net.Pipe()
	assert.Equal(t, codes.NotFound, status.Code(n.StreamPortForward(t.Context(), "absent", port, theirs)))
	require.NoError(t, n.StopPodSandbox(t.Context(), sandbox))
	_, theirs = net.Pipe()
	assert.Equal(t, codes.FailedPrecondition, status.Code(n.StreamPortForward(t.Context(), sandbox, port, theirs)))
}
