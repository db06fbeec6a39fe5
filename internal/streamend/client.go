package streamend

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

// A Client is the response writer of one who brings streams. Its connection, once it
// has been taken over, is watched: the libraries that read it do not tell whom they
// serve what they find.
type Client struct {
	http.ResponseWriter // without its Unwrap: nobody is to get past this
	idle                time.Duration
	ctx                 context.Context // of this one connection, which is a request too
	end                 context.CancelFunc

	mu    sync.Mutex // guards the fields below
	taken net.Conn
	over  bool
}

// NewClient watches the connection of a request. A connection over which nothing
// goes for as long as idle is closed; 0: never. End has to be called.
func NewClient(w http.ResponseWriter, r *http.Request, idle time.Duration) *Client {
	c := &Client{ResponseWriter: w, idle: idle}
	c.ctx, c.end = context.WithCancel(r.Context())
	context.AfterFunc(c.ctx, c.cut)
	return c
}

// Context ends when the client has gone, or with the request's.
func (c *Client) Context() context.Context { return c.ctx }

// End closes the connection if it was taken over.
func (c *Client) End() {
	c.end()
	c.cut()
}

func (c *Client) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.taken != nil {
		_ = c.taken.Close() // nobody is there to hear of it
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
		early, _ := buffers.Reader.Peek(n) // which are there
		watched.in = io.MultiReader(bytes.NewReader(bytes.Clone(early)), raw)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = raw
	if c.over {
		_ = raw.Close() // whoever uses it finds out
	}
	return watched, bufio.NewReadWriter(bufio.NewReader(watched), bufio.NewWriter(watched)), nil
}

// conn says when it breaks.
type conn struct {
	net.Conn
	in   io.Reader // what was read already, and then Conn
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

// alive puts off the end of a connection that nobody uses: whoever waits to read or
// to write is woken up by it.
func (c *conn) alive() {
	if c.idle > 0 {
		_ = c.SetDeadline(time.Now().Add(c.idle)) // fails only if it is closed
	}
}
