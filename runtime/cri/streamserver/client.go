package streamserver

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Client is the http.ResponseWriter of a client that brings streams. Once the
// connection is hijacked, the Client detects that the client disconnects; the protocol
// libraries do not report it to the functions that they call.
type Client struct {
	http.ResponseWriter // without its Unwrap, by which callers could get around this type
	idle                time.Duration
	ctx                 context.Context // of this one connection, which is a request too
	end                 context.CancelFunc

	mu    sync.Mutex // guards the fields below
	taken net.Conn
	over  bool
}

// NewClient returns a Client for the connection of a request. A connection without
// traffic for the duration idle is closed; zero means never. The caller must call End.
func NewClient(w http.ResponseWriter, r *http.Request, idle time.Duration) *Client {
	c := &Client{ResponseWriter: w, idle: idle}
	c.ctx, c.end = context.WithCancel(r.Context())
	context.AfterFunc(c.ctx, c.cut)
	return c
}

// Context returns a context that is done when the client has disconnected, or with the
// request's.
func (c *Client) Context() context.Context { return c.ctx }

// End closes the connection if it was hijacked.
func (c *Client) End() {
	c.end()
	c.cut()
}

func (c *Client) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.taken != nil {
		_ = c.taken.Close() // the client has disconnected
	}
}

// Hijack implements http.Hijacker.
func (c *Client) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	raw, buffers, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	watched := &conn{Conn: raw, in: raw, idle: c.idle, gone: c.end}
	if n := buffers.Reader.Buffered(); n > 0 {
		early, _ := buffers.Reader.Peek(n) // they are buffered
		watched.in = io.MultiReader(bytes.NewReader(bytes.Clone(early)), raw)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = raw
	if c.over {
		_ = raw.Close() // the next Read or Write fails
	}
	return watched, bufio.NewReadWriter(bufio.NewReader(watched), bufio.NewWriter(watched)), nil
}

// conn cancels the Client when a Read or Write fails.
type conn struct {
	net.Conn
	in   io.Reader // the bytes that were buffered, then Conn
	idle time.Duration
	gone context.CancelFunc
}

func (c *conn) Read(p []byte) (int, error) {
	c.alive()
	n, err := c.in.Read(p)
	if err != nil {
		c.gone()
		return n, err
	}
	c.alive()
	return n, nil
}

func (c *conn) Write(p []byte) (int, error) {
	c.alive()
	n, err := c.Conn.Write(p)
	if err != nil {
		c.gone()
	}
	return n, err
}

func (c *conn) Close() error {
	c.gone()
	return c.Conn.Close()
}

// alive extends the deadline of the connection, which interrupts a blocked Read or
// Write.
func (c *conn) alive() {
	if c.idle > 0 {
		_ = c.SetDeadline(time.Now().Add(c.idle)) // fails only if it is closed
	}
}
