package unixgrpc

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/stats"
)

// preface is the number of bytes that a client sends before its first frame.
const preface = 24

// A connection is a connection of a server. It observes the frames of both directions: only
// they show whether a client has accepted an answer, or has reset its call.
type connection struct {
	net.Conn
	in *connections

	mu        sync.Mutex // guards the fields below
	used      time.Time  // when the client has sent something
	received  frames
	sent      frames
	open      map[uint32]struct{} // the calls whose end was not sent
	lastCall  uint32
	enqueued  int // bytes of answers that were passed to gRPC
	delivered int // of those, bytes that were sent or whose call was reset

	deadline *time.Timer // nil if nothing is undelivered
	due      int         // the delivered bytes that deadline requires
}

// RemoteAddr returns an address that contains the connection, for deliveries.
func (c *connection) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

type remote struct {
	net.Addr
	of *connection
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = time.Now()
	c.received.scan(b[:n], func(f frame) {
		switch {
		case f.kind == frameHeaders && f.stream > c.lastCall:
			c.lastCall = f.stream
			c.open[f.stream] = struct{}{}
		case f.kind == frameRSTStream:
			c.resetLocked(f.stream)
		}
	})
	return n, err
}

func (c *connection) Write(b []byte) (int, error) {
	// A client that does not read must not block the connection, which the end of a server
	// waits for.
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.in.limits.Delivery)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent.scan(b[:n], func(f frame) {
		if f.kind == frameData {
			c.delivered += f.length
		}
		switch {
		case f.kind == frameRSTStream:
			c.resetLocked(f.stream)
		case f.kind <= frameHeaders && f.flag&flagEndStream != 0:
			delete(c.open, f.stream)
		}
	})
	c.settleLocked()
	return n, err
}

func (c *connection) Close() error {
	c.in.remove(c)
	c.mu.Lock()
	if c.deadline != nil {
		c.deadline.Stop()
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// resetLocked records that the answer of a call is discarded. Its size is not known: the calls
// count equally.
func (c *connection) resetLocked(call uint32) {
	if _, ok := c.open[call]; !ok {
		return
	}
	c.delivered += (c.enqueued - c.delivered) / len(c.open)
	delete(c.open, call)
	c.settleLocked()
}

// settleLocked records that everything is delivered if no call is open.
func (c *connection) settleLocked() {
	if len(c.open) == 0 {
		c.delivered = c.enqueued
	}
}

// enqueue records n bytes of an answer.
func (c *connection) enqueue(n int) {
	c.mu.Lock()
	c.enqueued += n
	c.settleLocked()
	if c.deadline == nil && c.enqueued > c.delivered {
		c.due = c.enqueued
		c.deadline = time.AfterFunc(c.in.limits.Delivery, c.checkDelivery)
	}
	c.mu.Unlock()
	c.in.reduce()
}

// checkDelivery closes the connection if answers that were enqueued when the deadline was set
// are undelivered.
func (c *connection) checkDelivery() {
	c.mu.Lock()
	late := c.delivered < c.due && c.enqueued-c.delivered >= minUndelivered
	if c.enqueued-c.delivered < minUndelivered {
		c.deadline = nil
	} else if !late {
		c.due = c.enqueued
		c.deadline.Reset(c.in.limits.Delivery)
	}
	c.mu.Unlock()
	if late {
		_ = c.Close()
	}
}

func (c *connection) undelivered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.enqueued-c.delivered, 0)
}

// A usage is how much a connection is used.
type usage struct {
	calls int // 0: there were none; 1: there were; 2: there are
	used  time.Time
}

func (u usage) compare(other usage) int {
	return cmp.Or(cmp.Compare(u.calls, other.calls), u.used.Compare(other.used))
}

func (c *connection) usage() usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := usage{used: c.used}
	switch {
	case len(c.open) > 0:
		u.calls = 2
	case c.lastCall > 0:
		u.calls = 1
	}
	return u
}

// deliveries records the answers that are passed to gRPC.
type deliveries struct{}

type connectionKey struct{}

func (deliveries) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if addr, ok := info.RemoteAddr.(remote); ok {
		return context.WithValue(ctx, connectionKey{}, addr.of)
	}
	return ctx
}

func (deliveries) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok {
		if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
			c.enqueue(out.WireLength)
		}
	}
}

func (deliveries) HandleConn(context.Context, stats.ConnStats) {}

func (deliveries) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
