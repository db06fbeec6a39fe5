package fakecri

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Attach is as Exec.
func (r *Runtime) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return call(ctx, r, r.ofContainer("Attach", req.GetContainerId()), func(context.Context) (*runtimeapi.AttachResponse, error) {
		if _, _, err := r.running("attach to", req.GetContainerId()); err != nil {
			return nil, err
		}
		return nil, unimplemented("Attach", "StreamAttach attaches")
	})
}

// PortForward is as Exec: the sandbox has to be ready.
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

// readyLocked returns a sandbox whose ports can be connected to.
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

// StreamPortForward connects to a port of the pod: to an [Endpoint] of one of its
// containers that run, or else to a Forward of theirs. Where nobody listens the
// connection is refused. Faults know it by this name. It closes conn.
func (r *Runtime) StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	return act(ctx, r, r.ofSandbox("StreamPortForward", sandboxID), func(ctx context.Context) error {
		address, serve, err := r.listener(sandboxID, port)
		switch {
		case err != nil:
			return err
		case serve != nil:
			err = serve(ctx, port, conn)
		case address == "":
			err = errors.New("connection refused")
		default:
			err = join(ctx, address, conn)
		}
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if err != nil {
			return refused("forward to port %d of sandbox %s: %v", port, sandboxID, err)
		}
		return nil
	})
}

// listener finds who answers at a port: an address of loopback, or a func.
func (r *Runtime) listener(sandboxID string, port int32) (address string, serve func(context.Context, int32, io.ReadWriteCloser) error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.readyLocked(sandboxID)
	if err != nil {
		return "", nil, err
	}
	for _, c := range s.containers {
		if !c.running() {
			continue
		}
		for _, e := range c.behaviour.Endpoints {
			if e.Port == port {
				return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), nil, nil
			}
		}
		if serve == nil {
			serve = c.behaviour.Forward
		}
	}
	return "", serve, nil
}

// join connects conn to an address, until that has no more to say.
func join(ctx context.Context, address string, conn io.ReadWriteCloser) error {
	to, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { to.Close(); conn.Close() })()
	var sending sync.WaitGroup
	sending.Go(func() {
		if _, err := io.Copy(to, conn); err == nil {
			_ = to.(*net.TCPConn).CloseWrite() // who reads the other half sees what is wrong
		}
	})
	_, err = io.Copy(conn, to)
	conn.Close()
	to.Close()
	sending.Wait()
	return err
}

// StreamAttach passes on what the container prints from now on, until it ends.
// Its input is thrown away. Faults know it by this name.
func (r *Runtime) StreamAttach(ctx context.Context, containerID string, s runtime.Streams) error {
	return act(ctx, r, r.ofContainer("StreamAttach", containerID), func(ctx context.Context) error {
		return unimplemented("StreamAttach", "not yet")
	})
}
