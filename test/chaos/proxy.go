package chaos

import (
	"errors"
	"net"
	"sync"
	"time"
)

// A proxy is between the agent and the socket of its runtime, and can close or delay their
// connections.
type proxy struct {
	path, to string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	held     chan struct{} // closed while data passes; open while it is held
	wg       sync.WaitGroup
}

// newProxy listens at path and connects to the socket to.
func newProxy(path, to string) (*proxy, error) {
	flows := make(chan struct{})
	close(flows)
	p := &proxy{path: path, to: to, conns: map[net.Conn]bool{}, held: flows}
	return p, p.mend()
}

// mend listens again after a cut.
func (p *proxy) mend() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("unix", p.path)
	if err != nil {
		return err
	}
	p.listener = l
	p.wg.Go(func() { p.serve(l) })
	return nil
}

// cut closes all connections and the listening socket.
func (p *proxy) cut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return nil
	}
	err := p.listener.Close() // removes the socket as well
	p.listener = nil
	for c := range p.conns {
		err = errors.Join(err, c.Close())
	}
	clear(p.conns)
	return err
}

// hold delays all data in both directions until release. New connections are accepted.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.held:
	default:
		close(p.held)
	}
}

// close stops the proxy and returns when its goroutines have returned.
func (p *proxy) close() error {
	err := p.cut()
	p.release()
	p.wg.Wait()
	return err
}

func (p *proxy) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // cut
		}
		p.wg.Go(func() { p.join(c) })
	}
}

// join copies data between the connections until either is closed.
func (p *proxy) join(near net.Conn) {
	far, err := net.DialTimeout("unix", p.to, 5*time.Second)
	if err != nil {
		_ = near.Close()
		return
	}
	p.mu.Lock()
	if p.listener == nil { // cut meanwhile
		p.mu.Unlock()
		_, _ = near.Close(), far.Close()
		return
	}
	p.conns[near], p.conns[far] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.flow(near, far) })
	both.Go(func() { p.flow(far, near) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, near)
	delete(p.conns, far)
	p.mu.Unlock()
}

func (p *proxy) flow(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		<-held
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
