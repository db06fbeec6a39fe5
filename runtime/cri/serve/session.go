package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/runtime"
)

// A session is what one connection of the streaming library does with the
// streams. The library has other contexts, which end never or too early.
type session struct {
	streams Streams
	ctx     context.Context // ends with the connection, which is a request too
	used    atomic.Bool     // its streams were opened
	calls   gate
}

var errOver = errors.New("serve: the connection is closed")

// ExecInContainer implements remotecommand.Executor, for which a command that
// fails is an error.
func (s *session) ExecInContainer(_ context.Context, _, _, containerID string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	s.used.Store(true)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	code, err := s.streams.StreamExec(ctx, containerID, cmd, streamsOf(ctx, in, out, errOut, tty, resize))
	if err == nil && code != 0 {
		err = utilexec.CodeExitError{Code: int(code), Err: fmt.Errorf("command terminated with exit code %d", code)}
	}
	return err
}

// AttachContainer implements remotecommand.Attacher.
func (s *session) AttachContainer(_ context.Context, _, _, containerID string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	s.used.Store(true)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	return s.streams.StreamAttach(ctx, containerID, streamsOf(ctx, in, out, errOut, tty, resize))
}

// PortForward implements portforward.PortForwarder. It is called on goroutines
// of the library's.
func (s *session) PortForward(_ context.Context, sandboxID, _ string, port int32, conn io.ReadWriteCloser) error {
	s.used.Store(true)
	if !s.calls.enter() {
		return errOver
	}
	defer s.calls.leave()
	return s.streams.StreamPortForward(s.ctx, sandboxID, port, conn)
}

// streamsOf puts streams together; ctx ends when they are not used any more.
func streamsOf(ctx context.Context, in io.Reader, out, errOut io.Writer, tty bool, resize <-chan remotecommand.TerminalSize) runtime.Streams {
	s := runtime.Streams{Stdin: in, Stdout: out, Stderr: errOut, TTY: tty}
	if resize == nil {
		return s
	}
	sizes := make(chan runtime.TerminalSize)
	s.Resize = sizes
	go func() {
		for {
			select {
			case size, ok := <-resize:
				if !ok {
					return
				}
				select {
				case sizes <- runtime.TerminalSize{Width: size.Width, Height: size.Height}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}
