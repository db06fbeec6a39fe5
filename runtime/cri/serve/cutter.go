package serve

import (
	"net"
	"sync"
)

// A cutter is a listener whose connections can all be closed.
type cutter struct {
	net.Listener

	mu    sync.Mutex // guards the fields below
	over  bool
	conns map[net.Conn]struct{}
}

// cut closes the connections, and each that is accepted from now on.
func (l *cutter) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for conn := range l.conns {
		_ = conn.Close() // nobody is there to hear of it
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

// cuttable is a connection of a cutter, which forgets it when it is closed.
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
