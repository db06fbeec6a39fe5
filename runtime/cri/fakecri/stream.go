package fakecri

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Attach returns Unimplemented like Exec.
func (r *Runtime) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return call(ctx, r, r.ofContainer("Attach", req.GetContainerId()), func(context.Context) (*runtimeapi.AttachResponse, error) {
		if _, _, err := r.running("attach to", req.GetContainerId()); err != nil {
			return nil, err
		}
		return nil, unimplemented("Attach", "StreamAttach attaches")
	})
}

// PortForward returns Unimplemented like Exec, if the sandbox is ready.
func (r *Runtime) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return call(ctx, r, r.ofSandbox("PortForward", req.GetPodSandboxId()), func(context.Context) (*runtimeapi.PortForwardResponse, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, err := r.readyLocked(req.GetPodSandboxId()); err != nil {
			return nil, err
		}
		return nil, unimplemented("PortForward", "StreamPortForward connects")
	})
}

// readyLocked returns a sandbox if it is ready.
func (r *Runtime) readyLocked(id string) (*sandbox, error) {
	s, err := r.sandboxes.find(id)
	if err != nil {
		return nil, unknownID("sandbox", id, err)
	}
	if !s.ready {
		return nil, refused("forward to ports of sandbox %s: it is not ready", s.id)
	}
	return s, nil
}

// StreamPortForward connects to a port of the pod: to a [fake.Endpoint] of one of its running containers,
// or else to their Forward. If there is neither, the connection is refused. It closes conn. Its name
// in Call.Method is StreamPortForward.
func (r *Runtime) StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	return act(ctx, r, r.ofSandbox("StreamPortForward", sandboxID), func(ctx context.Context) error {
		s, to, serve, err := r.listener(sandboxID, port)
		switch {
		case err != nil:
			return err
		case to != nil:
			err = join(ctx, to, conn)
		case serve != nil:
			err = serve(ctx, port, conn)
		default:
			err = errors.New("connection refused")
		}
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if err != nil {
			return refused("forward to port %d of sandbox %s: %v", port, s.id, err)
		}
		return nil
	})
}

// listener returns the connection or the function that serves a port.
func (r *Runtime) listener(sandboxID string, port int32) (s *sandbox, to net.Conn, serve func(context.Context, int32, io.ReadWriteCloser) error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, err = r.readyLocked(sandboxID); err != nil {
		return nil, nil, nil, err
	}
	if to = r.connectLocked([]*sandbox{s}, port); to != nil {
		return s, to, nil, nil
	}
	for _, c := range s.containers {
		if c.running() && c.behavior.Forward != nil {
			return s, nil, c.behavior.Forward, nil
		}
	}
	return s, nil, nil, nil
}

// join copies between the pod and the client until the pod closes its side.
func join(ctx context.Context, to net.Conn, conn io.ReadWriteCloser) error {
	defer context.AfterFunc(ctx, func() { to.Close(); conn.Close() })()
	var sending sync.WaitGroup
	sending.Go(func() { _, _ = io.Copy(to, conn) }) // errors are returned by the copy in the other direction
	_, err := io.Copy(conn, to)
	conn.Close()
	to.Close()
	sending.Wait()
	return err
}

// StreamAttach writes the output of the container from now on, until it exits. Input is read and
// discarded, also after StreamAttach has returned. Its name in Call.Method is StreamAttach.
func (r *Runtime) StreamAttach(ctx context.Context, containerID string, s runtime.Streams) error {
	return act(ctx, r, r.ofContainer("StreamAttach", containerID), func(ctx context.Context) error {
		c, _, err := r.running("attach to", containerID)
		if err != nil {
			return err
		}
		if in := s.Stdin; in != nil {
			go func() { _, _ = io.Copy(io.Discard, in) }()
		}
		s = fake.Streams(s)
		err = r.follow(ctx, c, func(_ time.Time, line string, stderr bool) error {
			out := s.Stdout
			if stderr {
				out = s.Stderr
			}
			_, err := io.WriteString(out, line+"\n")
			return err
		})
		if ctx.Err() != nil {
			return ended(ctx)
		}
		return err
	})
}
