package statuspage

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Limits of Serve.
const (
	maxConnections = 64
	maxHeaderBytes = 12 << 10 // net/http adds 4 KiB
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute // of a request with its response
	idleTimeout    = 90 * time.Second
)

// Serve serves handler on ln until ctx is done; it then closes ln and all connections and
// returns nil when every call of handler has returned. It returns an error if ln fails.
//
// At a loopback address it rejects requests for a host name that is not local: a web page
// could otherwise have its own name resolve to this machine, and read the response in the
// browser of a user.
//
// It holds at most 64 connections: for another, it closes the one that has been idle, or
// has been sending or reading, for longest. Headers of a request may have 16 KiB and take
// 10 seconds; a request and its response may take one minute. If logger is nil, logs are
// discarded.
func Serve(ctx context.Context, ln net.Listener, handler http.Handler, logger *slog.Logger) error {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	connections := &connections{ln: ln, logger: logger}
	var calls sync.RWMutex // held for reading during a call of handler
	handler = onlyLocalNames(ln.Addr(), handler)
	server := http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls.TryRLock() {
				defer calls.RUnlock()
				handler.ServeHTTP(w, r)
			}
		}),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ConnState: connections.changed,
		ErrorLog:    slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		_ = server.Close()
		_ = ln.Close() // if Serve has not been called yet, server does not close it
	})
	defer stop()
	err := server.Serve(ln)
	_ = server.Close()
	calls.Lock() // waits for the calls of handler
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("statuspage: serve at %v: %w", ln.Addr(), err)
}

// connections bounds the number of open connections.
type connections struct {
	ln     net.Listener
	logger *slog.Logger

	mu    sync.Mutex // guards the fields below
	order list.List  // of net.Conn, the one whose state changed last at the end
	byKey map[net.Conn]*list.Element
}

// changed is called by http.Server when the state of a connection changes.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	if oldest := c.change(conn, state); oldest != nil {
		_ = oldest.Close()
		c.logger.Debug("Closed the oldest connection: connection limit reached", "addr", c.ln.Addr(), "limit", maxConnections)
	}
}

// change records the state of a connection and returns one to close, if there are too many.
func (c *connections) change(conn net.Conn, state http.ConnState) (oldest net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[net.Conn]*list.Element{}
	}
	if e, ok := c.byKey[conn]; ok {
		c.order.Remove(e)
		delete(c.byKey, conn)
	}
	if state == http.StateClosed || state == http.StateHijacked {
		return nil
	}
	c.byKey[conn] = c.order.PushBack(conn)
	if c.order.Len() <= maxConnections {
		return nil
	}
	oldest = c.order.Remove(c.order.Front()).(net.Conn)
	delete(c.byKey, oldest)
	return oldest
}

// onlyLocalNames rejects requests to a loopback address that name another host. No browser
// connects to a unix socket.
func onlyLocalNames(addr net.Addr, next http.Handler) http.Handler {
	if addr.Network() == "unix" || Warning(addr) != "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			http.Error(w, "this page is for users of the machine only: request it from "+addr.String(), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
