package unixgrpc

import (
	"net"
	"sync"
)

// A cutter is a listener that can close all of its connections.
type cutter struct {
	net.Listener

	mu    sync.Mutex // guards the fields below
	over  bool
	conns map[net.Conn]struct{}
}

// cut closes all connections, including those accepted later.
func (l *cutter) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for conn := range l.conns {
		_ = conn.Close() // best effort
	}
	clear(l.conns)
}

func (l *cutter) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		_ = conn.Close()
	} else {
		l.conns[conn] = struct{}{}
	}
	return &cuttable{conn, l}, nil
}

// cuttable is a connection of a cutter.
type cuttable struct {
	net.Conn
	of *cutter
}

func (c *cuttable) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
