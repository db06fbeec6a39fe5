package process

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime"
)

// noAttach is the reason why attach is not implemented.
const noAttach = "a process has no input, and its supervisor alone reads its output, into the log"

// StreamAttach is not implemented: the supervisor, which outlives the agent, has
// the streams of a container.
func (r *Runtime) StreamAttach(context.Context, string, runtime.Streams) error {
	return unimplemented("StreamAttach", noAttach)
}

// StreamPortForward connects to a port at the sandbox's own address or, if the
// connection is refused, at 127.0.0.1, for processes that listen on loopback. In
// this way ports of the host and of other pods can be reached, as they can from
// the pod. It copies until the process closes its output, conn fails, or ctx is
// done, and closes conn.
func (r *Runtime) StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	fail := func(code codes.Code, why any) error {
		return status.Errorf(code, "process: forward to port %d of sandbox %s: %v", port, sandboxID, why)
	}
	r.mu.Lock()
	s, ok := r.sandboxes[sandboxID]
	closed := r.closed
	var rec sandboxRecord
	if ok {
		rec = s.rec
	}
	r.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case !ok:
		return fail(codes.NotFound, "not found")
	case !rec.Ready:
		return fail(codes.FailedPrecondition, "it is not ready")
	}
	to, err := dialAny(ctx, []string{rec.IP, "127.0.0.1"}, port)
	if err != nil {
		return fail(codeOfEnd(ctx), err)
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { to.Close(); conn.Close() })()

	var sending sync.WaitGroup
	sending.Go(func() {
		_, err := io.Copy(to, conn)
		if half, ok := to.(*net.TCPConn); ok && err == nil {
			_ = half.CloseWrite() // the error shows when reading
		}
	})
	_, err = io.Copy(conn, to)
	conn.Close()
	to.Close()
	sending.Wait()
	if ctx.Err() != nil {
		return fail(codeOfEnd(ctx), ctx.Err())
	}
	if err != nil {
		return fail(codes.Unknown, err)
	}
	return nil
}

// dialAny connects to the first address that accepts the connection.
func dialAny(ctx context.Context, ips []string, port int32) (net.Conn, error) {
	var errs []error
	for _, ip := range ips {
		if ip == "" {
			continue
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(int(port))))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// codeOfEnd returns the status code of a failure that ctx may have caused.
func codeOfEnd(ctx context.Context) codes.Code {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Code()
	}
	return codes.Unknown
}
