package server

import (
	"container/list"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A crew is all connections of a Listener. Those without an authorized request so far are
// strangers: beyond a number, a new one closes an old one. A stranger stays one while its
// request is being authenticated and authorized, which can take as long as the API server
// takes; a new request makes it the last to be closed among those of its host.
//
//	accepted → stranger          closed when there are too many
//	               └→ trusted    for good; never closed to make room
//
// Of an open listener all connections are strangers at all times.
type crew struct {
	max, strangers, unread int
	log                    *slog.Logger

	mu     sync.Mutex // guards the fields below and those of its conns
	all    map[*conn]struct{}
	hosts  map[string]*list.List // of *conn, those that wait; the one that has waited longest first
	waits  int                   // how many do
	bytes  int                   // that those who wait have sent
	closed bool
	said   time.Time // when somebody was told last that there is no room
}

// A conn is one connection.
type conn struct {
	net.Conn
	crew *crew
	host string // whence it is

	// Guarded by crew.mu.
	place *list.Element // among the strangers of its host; nil if trusted or gone
	bytes int           // sent since the last request was complete
	gone  bool

	isTrusted atomic.Bool // then there is nothing to count, and no lock to wait for
}

// A door makes conns of what is accepted.
type door struct {
	net.Listener
	crew *crew
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if in := d.crew.admit(c); in != nil {
			return in, nil
		}
		_ = c.Close()
	}
}

// admit takes a connection in; nil if there is no room. It may be another that goes:
// that which has waited longest, of the host that has most who wait, so that one host
// alone drives nobody out but its own.
func (w *crew) admit(nc net.Conn) *conn {
	w.mu.Lock()
	if w.closed || len(w.all) >= w.max && w.waits == 0 {
		now := time.Now()
		say := !w.closed && now.Sub(w.said) > time.Minute
		if say {
			w.said = now
		}
		w.mu.Unlock()
		if say {
			w.log.Warn("a connection was refused: there are too many", "from", nc.RemoteAddr(), "limit", w.max)
		}
		return nil
	}
	if w.all == nil {
		w.all, w.hosts = map[*conn]struct{}{}, map[string]*list.List{}
	}
	c := &conn{Conn: nc, crew: w, host: nc.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(c.host); err == nil {
		c.host = host
	}
	var out *conn
	if w.waits >= w.strangers || len(w.all) >= w.max {
		var most *list.List
		for _, of := range w.hosts {
			if most == nil || of.Len() > most.Len() {
				most = of
			}
		}
		out = most.Front().Value.(*conn)
		out.leaveLocked()
	}
	w.all[c] = struct{}{}
	c.waitLocked()
	w.mu.Unlock()
	if out != nil {
		out.evict("too many wait")
	}
	return c
}

// closeAll closes what there is, and all that comes.
func (w *crew) closeAll() {
	w.mu.Lock()
	w.closed = true
	var all []*conn
	for c := range w.all {
		c.leaveLocked()
		all = append(all, c)
	}
	w.mu.Unlock()
	for _, c := range all {
		_ = c.Conn.Close()
	}
}

// biggestLocked returns who waits and has sent most.
func (w *crew) biggestLocked() (most *conn) {
	for _, of := range w.hosts {
		for e := of.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); most == nil || c.bytes > most.bytes {
				most = c
			}
		}
	}
	return most
}

// Read counts what a stranger sends before his request is complete.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.sent(n)
	}
	return n, err
}

func (c *conn) sent(n int) {
	if c.isTrusted.Load() {
		return
	}
	w := c.crew
	w.mu.Lock()
	if c.place == nil {
		w.mu.Unlock()
		return
	}
	c.bytes += n
	w.bytes += n
	var out *conn
	if w.bytes > w.unread {
		out = w.biggestLocked()
		out.leaveLocked()
	}
	w.mu.Unlock()
	if out != nil {
		out.evict("too much was sent without a request")
	}
}

// begin is called when a request is complete. It moves a stranger behind the others.
func (c *conn) begin() {
	if c.isTrusted.Load() {
		return
	}
	c.crew.mu.Lock()
	defer c.crew.mu.Unlock()
	if c.place != nil {
		c.standLocked()
		c.waitLocked()
	}
}

// trusted is called when a request has been authorized.
func (c *conn) trusted() {
	if c.isTrusted.Load() {
		return
	}
	c.crew.mu.Lock()
	defer c.crew.mu.Unlock()
	c.standLocked()
	c.isTrusted.Store(true)
}

// waitLocked puts c among those who wait.
func (c *conn) waitLocked() {
	of := c.crew.hosts[c.host]
	if of == nil {
		of = list.New()
		c.crew.hosts[c.host] = of
	}
	c.place = of.PushBack(c)
	c.crew.waits++
}

// standLocked takes c from those who wait.
func (c *conn) standLocked() {
	if c.place == nil {
		return
	}
	of := c.crew.hosts[c.host]
	if of.Remove(c.place); of.Len() == 0 {
		delete(c.crew.hosts, c.host)
	}
	c.crew.waits--
	c.crew.bytes -= c.bytes
	c.place, c.bytes = nil, 0
}

// leaveLocked takes c from the crew.
func (c *conn) leaveLocked() {
	c.standLocked()
	c.gone = true
	delete(c.crew.all, c)
}

func (c *conn) evict(why string) {
	c.crew.log.Debug("a connection was closed for the sake of others", "from", c.RemoteAddr(), "because", why)
	_ = c.Conn.Close()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.crew.mu.Lock()
	c.leaveLocked()
	c.crew.mu.Unlock()
	return c.Conn.Close()
}
