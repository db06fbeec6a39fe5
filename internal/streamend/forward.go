package streamend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// PortForward lets a client have connections to ports: as many as it likes over SPDY,
// one to each of ports over WebSocket. forward is called for each of them, on
// goroutines of its own, and closes conn; its ctx ends when the client has gone, and
// its error is told to the client.
func PortForward(w http.ResponseWriter, r *http.Request, ports []int32, limits Timeouts, forward func(ctx context.Context, port int32, conn io.ReadWriteCloser) error) {
	client := NewClient(w, r, limits.Idle)
	f := &forwarder{client: client, forward: forward}
	defer func() {
		client.End()
		f.calls.Close()
	}()
	portforward.ServePortForward(client, r, f, "", "", &portforward.V4Options{Ports: ports}, limits.Idle, limits.Creation, portforward.SupportedProtocols)
}

var errOver = errors.New("the connection is closed")

// A forwarder is what the library calls, on goroutines that nobody waits for.
type forwarder struct {
	client  *Client
	forward func(context.Context, int32, io.ReadWriteCloser) error
	calls   Gate
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

// forwarded is the client's end of a forwarded port. The library hands it out
// before it has told the client that it accepts it; if the client goes at that
// moment, the library's Write and Close wait for ever.
type forwarded struct {
	io.ReadWriteCloser
	ctx      context.Context // ends with the connection
	accepted atomic.Bool
}

func (f *forwarded) Write(p []byte) (int, error) {
	if f.accepted.Load() {
		return f.ReadWriteCloser.Write(p)
	}
	p = bytes.Clone(p) // whoever waits for ever keeps it
	return f.await(func() (int, error) { return f.ReadWriteCloser.Write(p) })
}

func (f *forwarded) Close() error {
	_, err := f.await(func() (int, error) { return 0, f.ReadWriteCloser.Close() })
	return err
}

// await does something that may wait for the acceptance, until the connection
// ends.
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

// A Gate lets calls in until it is closed, which waits until all have left. The zero
// value is open.
type Gate struct {
	mu     sync.Mutex
	closed bool // guarded by mu
	inside sync.WaitGroup
}

// Enter reports whether the gate is open; who is in has to Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

// Leave is the end of one who was let in.
func (g *Gate) Leave() { g.inside.Done() }

// Close closes the gate.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
