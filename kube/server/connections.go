package server

import (
	"container/list"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// connections are all connections of a Listener. A connection is unauthenticated until one
// of its requests is authorized:
//
//	accepted → unauthenticated    closed if a limit is exceeded
//	               └→ authenticated    permanently; never closed because of a limit
//
// It remains unauthenticated while its request is authenticated and authorized, which may
// take as long as the API server does. Each request moves it to the end of the queue of its
// client address, whose first connection is closed first.
type connections struct {
	max, maxUnauthenticated, maxPendingBytes int
	log                                      *slog.Logger

	mu              sync.Mutex // guards the fields below and the marked ones of connection
	all             map[*connection]struct{}
	queues          map[string]*list.List // unauthenticated *connection, by client address; oldest first
	unauthenticated int                   // total length of queues
	pendingBytes    int                   // of all connections in queues
	closed          bool
	warned          time.Time // last warning about a refused connection
}

// A connection is a connection of a Listener.
type connection struct {
	net.Conn
	in   *connections
	host string // client address, without the port

	// Guarded by in.mu.
	place        *list.Element // in the queue of its host; nil if authenticated or removed
	pendingBytes int           // received since the last complete request

	authenticated atomic.Bool // nothing is counted, so that Read takes no lock
}

// A limitedListener accepts connections within the limits.
type limitedListener struct {
	net.Listener
	conns *connections
}

// Accept implements net.Listener. Connections that are refused are closed.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.conns.add(nc); c != nil {
			return c, nil
		}
		_ = nc.Close()
	}
}

// add adds a connection; it returns nil if it is refused. If a limit is exceeded it closes
// the oldest unauthenticated connection of the client address that has most of them, so
// that one address cannot displace others.
func (s *connections) add(nc net.Conn) *connection {
	s.mu.Lock()
	if s.closed || len(s.all) >= s.max && s.unauthenticated == 0 {
		now := time.Now()
		warn := !s.closed && now.Sub(s.warned) > time.Minute
		if warn {
			s.warned = now
		}
		s.mu.Unlock()
		if warn {
			s.log.Warn("Refused connection: connection limit reached", "remoteAddr", nc.RemoteAddr(), "limit", s.max)
		}
		return nil
	}
	if s.all == nil {
		s.all, s.queues = map[*connection]struct{}{}, map[string]*list.List{}
	}
	c := &connection{Conn: nc, in: s, host: auth.ClientKey(nc.RemoteAddr().String())}
	var evicted *connection
	if s.unauthenticated >= s.maxUnauthenticated || len(s.all) >= s.max {
		var longest *list.List
		for _, q := range s.queues {
			if longest == nil || q.Len() > longest.Len() {
				longest = q
			}
		}
		evicted = longest.Front().Value.(*connection)
		evicted.removeLocked()
	}
	s.all[c] = struct{}{}
	c.enqueueLocked()
	s.mu.Unlock()
	if evicted != nil {
		evicted.evict("too many unauthenticated connections")
	}
	return c
}

// closeAll closes all connections, and refuses further ones.
func (s *connections) closeAll() {
	s.mu.Lock()
	s.closed = true
	var all []*connection
	for c := range s.all {
		c.removeLocked()
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		_ = c.Conn.Close()
	}
}

// largestLocked returns the unauthenticated connection with most pending bytes.
func (s *connections) largestLocked() (most *connection) {
	for _, q := range s.queues {
		for e := q.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*connection); most == nil || c.pendingBytes > most.pendingBytes {
				most = c
			}
		}
	}
	return most
}

// Read implements net.Conn. It counts the bytes of incomplete requests.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received(n)
	}
	return n, err
}

func (c *connection) received(n int) {
	if c.authenticated.Load() {
		return
	}
	s := c.in
	s.mu.Lock()
	if c.place == nil {
		s.mu.Unlock()
		return
	}
	c.pendingBytes += n
	s.pendingBytes += n
	var evicted *connection
	if s.pendingBytes > s.maxPendingBytes {
		evicted = s.largestLocked()
		evicted.removeLocked()
	}
	s.mu.Unlock()
	if evicted != nil {
		evicted.evict("too many bytes of incomplete requests")
	}
}

// requestReceived is called when a request is complete. It moves an unauthenticated
// connection to the end of its queue.
func (c *connection) requestReceived() {
	if c.authenticated.Load() {
		return
	}
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.place != nil {
		c.dequeueLocked()
		c.enqueueLocked()
	}
}

// requestAuthorized marks the connection as authenticated.
func (c *connection) requestAuthorized() {
	if c.authenticated.Load() {
		return
	}
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.dequeueLocked()
	c.authenticated.Store(true)
}

func (c *connection) enqueueLocked() {
	q := c.in.queues[c.host]
	if q == nil {
		q = list.New()
		c.in.queues[c.host] = q
	}
	c.place = q.PushBack(c)
	c.in.unauthenticated++
}

// dequeueLocked removes c from its queue and resets its count of bytes.
func (c *connection) dequeueLocked() {
	if c.place == nil {
		return
	}
	q := c.in.queues[c.host]
	if q.Remove(c.place); q.Len() == 0 {
		delete(c.in.queues, c.host)
	}
	c.in.unauthenticated--
	c.in.pendingBytes -= c.pendingBytes
	c.place, c.pendingBytes = nil, 0
}

func (c *connection) removeLocked() {
	c.dequeueLocked()
	delete(c.in.all, c)
}

func (c *connection) evict(reason string) {
	c.in.log.Debug("Closed unauthenticated connection: limit reached", "remoteAddr", c.RemoteAddr(), "reason", reason)
	_ = c.Conn.Close()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.in.mu.Lock()
	c.removeLocked()
	c.in.mu.Unlock()
	return c.Conn.Close()
}
