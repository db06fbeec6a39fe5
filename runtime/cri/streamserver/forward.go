package streamserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/kubeparts/kubeparts/internal/gate"
)

// PortForward serves connections of a client to ports: any number over SPDY, one to
// each of ports over WebSocket. It calls forward for each connection, on a goroutine of
// its own, and returns when all calls have returned. The function forward must close
// conn; its ctx is done when the client has disconnected, and the client receives its
// error.
func (s Server) PortForward(w http.ResponseWriter, r *http.Request, ports []int32, forward func(ctx context.Context, port int32, conn io.ReadWriteCloser) error) {
	client := NewClient(w, r, s.Idle)
	f := &forwarder{client: client, forward: forward}
	defer func() {
		client.End()
		f.calls.Close()
	}()
	portforward.ServePortForward(client, r, f, "", "", &portforward.V4Options{Ports: ports}, s.Idle, s.Creation, portforward.SupportedProtocols)
}

var errOver = errors.New("the connection is closed")

// A forwarder is called by the library, on goroutines that the library does not wait
// for.
type forwarder struct {
	client  *Client
	forward func(context.Context, int32, io.ReadWriteCloser) error
	calls   gate.Gate
}

// PortForward implements portforward.PortForwarder.
func (f *forwarder) PortForward(_ context.Context, _, _ string, port int32, conn io.ReadWriteCloser) error {
	if !f.calls.Enter() {
		return errOver
	}
	defer f.calls.Leave()
	ctx := f.client.Context()
	return f.forward(ctx, port, &forwarded{ReadWriteCloser: conn, ctx: ctx})
}

// forwarded is the client's connection to a forwarded port. The library passes it on
// before it has accepted the client's streams; if the client disconnects at that moment,
// the library's Write and Close block forever.
type forwarded struct {
	io.ReadWriteCloser
	ctx      context.Context // ends with the connection
	accepted atomic.Bool
}

func (f *forwarded) Write(p []byte) (int, error) {
	if f.accepted.Load() {
		return f.ReadWriteCloser.Write(p)
	}
	p = bytes.Clone(p) // a call that blocks forever keeps it
	return f.await(func() (int, error) { return f.ReadWriteCloser.Write(p) })
}

func (f *forwarded) Close() error {
	_, err := f.await(func() (int, error) { return 0, f.ReadWriteCloser.Close() })
	return err
}

// await runs do, which may block until the streams are accepted, until the connection
// is closed.
func (f *forwarded) await(do func() (int, error)) (int, error) {
	if f.accepted.Load() {
		return do()
	}
	if f.ctx.Err() != nil {
		return 0, errOver
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := do()
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		f.accepted.Store(true)
		return r.n, r.err
	case <-f.ctx.Done():
		return 0, errOver
	}
}
