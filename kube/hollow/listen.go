package hollow

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// sockets are the sockets at which nodes are served, as one net.Listener. The local address of a
// connection determines the node.
type sockets struct {
	ip     netip.Addr // of all nodes
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once // of closed
	wg     sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	byNode map[string]net.Listener
	byPort map[int]string
}

func newSockets(ip netip.Addr) *sockets {
	return &sockets{ip: ip, conns: make(chan net.Conn), closed: make(chan struct{}), byNode: map[string]net.Listener{}, byPort: map[int]string{}}
}

// endpoint returns the endpoint of a node, and listens on it if it does not yet.
func (s *sockets) endpoint(node string) (fakenode.Endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byNode[node]
	if l == nil {
		select {
		case <-s.closed:
			return fakenode.Endpoint{}, net.ErrClosed
		default:
		}
		var err error
		if l, err = net.Listen("tcp", netip.AddrPortFrom(s.ip, 0).String()); err != nil {
			return fakenode.Endpoint{}, fmt.Errorf("hollow: listen for node %s: %w", node, err)
		}
		s.byNode[node], s.byPort[portOf(l.Addr())] = l, node
		s.wg.Go(func() { s.accept(l) })
	}
	return fakenode.Endpoint{Address: s.ip.String(), Port: int32(portOf(l.Addr()))}, nil
}

func portOf(a net.Addr) int { return a.(*net.TCPAddr).Port }

// node returns the node of a local address; "" if there is none.
func (s *sockets) node(local net.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byPort[portOf(local)]
}

// acceptRetry is the time until a connection is accepted again after a failure.
const acceptRetry = 100 * time.Millisecond

// accept passes on the connections of one socket until it is closed.
func (s *sockets) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no file descriptors
			time.Sleep(acceptRetry)
			continue
		}
		select {
		case s.conns <- conn:
		case <-s.closed:
			_ = conn.Close() // it was not served
		}
	}
}

// retain closes the sockets of the nodes for which keep returns false.
func (s *sockets) retain(keep func(node string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range slices.Collect(maps.Keys(s.byNode)) {
		if l := s.byNode[node]; !keep(node) {
			delete(s.byNode, node)
			delete(s.byPort, portOf(l.Addr()))
			_ = l.Close() // no connection is lost that was accepted
		}
	}
}

// Accept implements net.Listener.
func (s *sockets) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *sockets) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.retain(func(string) bool { return false })
	s.wg.Wait()
	return nil
}

// Addr implements net.Listener.
func (s *sockets) Addr() net.Addr { return &net.TCPAddr{IP: s.ip.AsSlice()} }
