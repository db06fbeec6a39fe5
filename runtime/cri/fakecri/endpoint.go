package fakecri

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// serving holds the listeners and connections of a running container.
type serving struct {
	r         *Runtime
	id        string
	endpoints []fake.Endpoint
	start     time.Time

	mu        sync.Mutex // guards the fields below; not held while blocking
	over      bool
	conns     map[net.Conn]struct{}
	listeners map[int32]net.Listener // by Endpoint.Port
	timers    []*time.Timer
}

// serve opens the endpoints of a container.
func (r *Runtime) serve(c *container) {
	if len(c.behavior.Endpoints) == 0 {
		return
	}
	s := &serving{
		r: r, id: c.id, endpoints: c.behavior.Endpoints, start: time.Unix(0, c.started),
		conns: map[net.Conn]struct{}{}, listeners: map[int32]net.Listener{},
	}
	c.serving = s
	if !r.cfg.Listen {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		if e.HTTP || e.ReadyAfter == 0 {
			s.listenLocked(e)
		} else {
			s.laterLocked(e.ReadyAfter, func() { s.listenLocked(e) })
		}
		if !e.HTTP && e.UnreadyAfter > 0 {
			s.laterLocked(e.UnreadyAfter, func() { s.deafenLocked(e) })
		}
	}
}

// laterLocked calls a function with mu held after a delay, unless the container has
// exited.
func (s *serving) laterLocked(after time.Duration, do func()) {
	s.timers = append(s.timers, time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.over {
			do()
		}
	}))
}

func (s *serving) listenLocked(e fake.Endpoint) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(e.Port))))
	if err != nil {
		s.r.log.Warn("Failed to listen on container port", "containerID", s.id, "port", e.Port, "err", err)
		return
	}
	s.listeners[e.Port] = l
	go func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				s.r.log.Warn("Failed to accept connection to container, accepting no more", "containerID", s.id, "port", e.Port, "err", err)
				return
			}
			if s.take(conn) {
				go s.talk(conn, e)
			}
		}
	}()
}

func (s *serving) deafenLocked(e fake.Endpoint) {
	if l := s.listeners[e.Port]; l != nil {
		_ = l.Close() // it was open
		delete(s.listeners, e.Port)
	}
}

// end closes all listeners and connections, whose goroutines then return.
func (s *serving) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, t := range s.timers {
		t.Stop()
	}
	for _, e := range s.endpoints {
		s.deafenLocked(e)
	}
	for conn := range s.conns {
		_ = conn.Close() // the container exits
	}
	clear(s.conns)
}

// take registers a connection, which is closed when the container exits, or immediately
// if it has exited.
func (s *serving) take(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

// talk serves one connection until either side closes it.
func (s *serving) talk(conn net.Conn, e fake.Endpoint) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		_ = conn.Close()
	}()
	if !e.HTTP {
		_, _ = io.Copy(io.Discard, conn) // until it is closed
		return
	}
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		resp := &http.Response{ProtoMajor: 1, ProtoMinor: 1, StatusCode: http.StatusOK, Request: req, Close: req.Close}
		if !e.Ready(time.Since(s.start)) {
			resp.StatusCode = http.StatusServiceUnavailable
		}
		if err := resp.Write(conn); err != nil || req.Close {
			return
		}
	}
}

// Endpoint returns the loopback address of an endpoint of a running container of a pod.
// There is none without Config.Listen, if the port was in use, and, unless it is HTTP,
// while the endpoint is not ready.
func (r *Runtime) Endpoint(podUID, container string, port int32) (addr string, ok bool) {
	r.mu.Lock()
	var s *serving
	if c := r.runningLocked(podUID, container); c != nil {
		s = c.serving
	}
	r.mu.Unlock()
	if s == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.listeners[port]
	if l == nil {
		return "", false
	}
	return l.Addr().String(), true
}

// DialContext connects to an endpoint at the address of its pod, such as
// "10.0.0.1:8080", or on loopback for pods on the host network. It uses no network, so
// that it works in a testing/synctest bubble, and has the signature of DialContext of an
// http.Transport. The connection is refused if no container serves the port, or if an
// endpoint that is not HTTP is not ready.
func (r *Runtime) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: podAddr(address), Err: err}
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return fail(err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fail(err)
	}
	r.mu.Lock()
	conn := r.connectLocked(r.atLocked(host), int32(port))
	r.mu.Unlock()
	if conn == nil {
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	return conn, nil
}

// podAddr is an address in errors.
type podAddr string

func (podAddr) Network() string  { return "tcp" }
func (a podAddr) String() string { return string(a) }

// atLocked returns the sandboxes with an address.
func (r *Runtime) atLocked(host string) []*sandbox {
	if s := r.byIP[host]; s != nil {
		return []*sandbox{s}
	}
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return nil
	}
	var list []*sandbox
	for s := range r.sandboxes.all() {
		if s.hostNetwork() {
			list = append(list, s)
		}
	}
	return list
}

// connectLocked connects to a port of sandboxes; it returns nil if that is refused. The
// goroutine that serves the connection returns when the connection is closed or the
// container exits.
func (r *Runtime) connectLocked(sandboxes []*sandbox, port int32) net.Conn {
	for _, s := range sandboxes {
		for _, c := range s.containers {
			if c.serving == nil {
				continue
			}
			for _, e := range c.serving.endpoints {
				if e.Port != port || !e.HTTP && !e.Ready(time.Since(c.serving.start)) {
					continue
				}
				here, there := net.Pipe()
				if c.serving.take(there) {
					go c.serving.talk(there, e)
				}
				return here
			}
		}
	}
	return nil
}
