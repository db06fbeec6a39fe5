package containers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

var _ cri.LocalStreams = (*service)(nil)

// streamsOf replaces nil writers, so that a backend needs no checks.
func streamsOf(s runtime.Streams) runtime.Streams {
	if s.Stdout == nil {
		s.Stdout = io.Discard
	}
	if s.TTY {
		s.Stderr = s.Stdout
	} else if s.Stderr == nil {
		s.Stderr = io.Discard
	}
	return s
}

// running returns the backend's ID of an instance that was run.
func (s *service) running(ctx context.Context, id string) (string, error) {
	backendID, err := s.backendID(ctx, id)
	if err == nil && backendID == "" {
		err = fmt.Errorf("containers: instance %s has not started", id)
	}
	return backendID, err
}

func (s *service) StreamExec(ctx context.Context, id string, cmd []string, streams runtime.Streams) (int32, error) {
	if s.execer == nil {
		return 0, unsupported("exec", "the backend is no Execer")
	}
	backendID, err := s.running(ctx, id)
	if err != nil {
		return 0, err
	}
	return s.execer.Exec(ctx, backendID, cmd, streamsOf(streams))
}

func (s *service) StreamAttach(ctx context.Context, id string, streams runtime.Streams) error {
	if s.attacher == nil {
		return unsupported("attach", "the backend is no Attacher")
	}
	backendID, err := s.running(ctx, id)
	if err != nil {
		return err
	}
	return s.attacher.Attach(ctx, backendID, streamsOf(streams))
}

// StreamPortForward dials the pod's address: its network must be reachable from this host.
func (s *service) StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error {
	v, err := s.observe(ctx)
	if err != nil {
		return err
	}
	box := v.sandboxes[sandboxID]
	if box == nil {
		return notFound("sandbox", sandboxID)
	}
	if len(box.ips) == 0 {
		return unsupported("port-forward", "the pod has no address")
	}
	pod, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(box.ips[0], strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer pod.Close()
	defer context.AfterFunc(ctx, func() { pod.Close(); conn.Close() })()
	go func() {
		_, err := io.Copy(pod, conn)
		if tcp, ok := pod.(*net.TCPConn); ok && err == nil {
			err = tcp.CloseWrite()
		}
		if err != nil {
			pod.Close()
		}
	}()
	_, err = io.Copy(conn, pod)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// maxOutput is the number of bytes of each output that ExecSync returns, as CRI runtimes do.
const maxOutput = 16 << 20

// ExecSync runs a command of a probe or hook.
func (s *service) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, []byte, error) {
	bounded := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var stdout, stderr limitedBuffer
	code, err := s.StreamExec(bounded, id, cmd, runtime.Streams{Stdout: &stdout, Stderr: &stderr})
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded):
		err = status.Errorf(codes.DeadlineExceeded, "containers: command %q timed out after %v", cmd, timeout)
	case err == nil && code != 0:
		err = exitError(code)
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

// An exitError is the error of a command that failed.
type exitError int

func (e exitError) Error() string   { return fmt.Sprintf("command exited with %d", int(e)) }
func (e exitError) ExitStatus() int { return int(e) }

// A limitedBuffer discards what exceeds maxOutput.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxOutput-b.Len())])
	return len(p), nil
}
