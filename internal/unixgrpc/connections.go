package unixgrpc

import (
	"net"
	"sync"
	"time"
)

// connections is a listener that bounds its connections and can close all of them.
type connections struct {
	net.Listener
	limits Limits

	mu   sync.Mutex // guards the fields below; taken before connection.mu
	over bool
	all  map[*connection]struct{}
}

// closeAll closes all connections, including those accepted later.
func (l *connections) closeAll() {
	l.mu.Lock()
	l.over = true
	all := l.all
	l.all = map[*connection]struct{}{}
	l.mu.Unlock()
	for c := range all {
		_ = c.Close() // best effort
	}
}

func (l *connections) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, in: l, used: time.Now(), received: frames{skip: preface}, open: map[uint32]struct{}{}}
	var excess *connection
	l.mu.Lock()
	switch {
	case l.over:
		excess = c
	case len(l.all) >= l.limits.Connections:
		excess = l.leastUsedLocked()
	}
	if !l.over {
		l.all[c] = struct{}{}
	}
	l.mu.Unlock()
	if excess != nil {
		_ = excess.Close()
	}
	return c, nil
}

// leastUsedLocked returns the connection with the least usage.
func (l *connections) leastUsedLocked() (least *connection) {
	var of usage
	for c := range l.all {
		if u := c.usage(); least == nil || u.compare(of) < 0 {
			least, of = c, u
		}
	}
	return least
}

// reduce closes the connections with most undelivered bytes while there are too many.
func (l *connections) reduce() {
	for {
		var most *connection
		total, size := 0, 0
		l.mu.Lock()
		for c := range l.all {
			n := c.undelivered()
			if total += n; n > size {
				most, size = c, n
			}
		}
		l.mu.Unlock()
		if total <= l.limits.Undelivered {
			return
		}
		_ = most.Close()
	}
}

func (l *connections) remove(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, c)
}
