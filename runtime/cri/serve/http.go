package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	// idleTimeout is how long a connection may be silent; containerd's.
	idleTimeout = 4 * time.Hour

	// creationTimeout is how long a client may take from connecting to opening
	// its streams. The library waits so long for one that has gone.
	creationTimeout = 10 * time.Second
)

// serveStreams serves the URLs until ctx ends and all streams have been closed.
func (s *Server) serveStreams(ctx context.Context, listener net.Listener) error {
	var sessions gate
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if sessions.enter() {
				defer sessions.leave()
				s.serveStream(w, req)
			}
		}),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			conn := c.(*conn)
			ctx, conn.gone = context.WithCancel(ctx)
			return context.WithValue(ctx, connKey{}, conn)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateHijacked {
				c.(*conn).taken.Store(true)
			}
		},
		ReadHeaderTimeout: creationTimeout,
		IdleTimeout:       creationTimeout, // of one that was told of a wrong URL, say
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(connListener{listener})
	sessions.close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serveStream serves one connection. It returns when nothing uses the streams
// any more.
func (s *Server) serveStream(w http.ResponseWriter, req *http.Request) {
	// The http.Server forgets connections that have become streams.
	conn := req.Context().Value(connKey{}).(*conn)
	stop := context.AfterFunc(req.Context(), func() { conn.Close() })
	defer stop()
	ctx, cancel := context.WithCancel(req.Context())
	session := &session{streams: s.cfg.Streams, ctx: ctx}
	defer func() {
		cancel()
		session.calls.close()
		if conn.taken.Load() && !session.used.Load() {
			conn.Close() // the library does not, where the client opened no streams
		}
	}()
	switch r := s.urls.take(req.URL.Path).(type) {
	case *runtimeapi.ExecRequest:
		remotecommand.ServeExec(w, req, session, "", "", r.GetContainerId(), r.GetCmd(),
			&remotecommand.Options{Stdin: r.GetStdin(), Stdout: r.GetStdout(), Stderr: r.GetStderr(), TTY: r.GetTty()},
			idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
	case *runtimeapi.AttachRequest:
		remotecommand.ServeAttach(w, req, session, "", "", r.GetContainerId(),
			&remotecommand.Options{Stdin: r.GetStdin(), Stdout: r.GetStdout(), Stderr: r.GetStderr(), TTY: r.GetTty()},
			idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
	case *runtimeapi.PortForwardRequest:
		ports, err := portforward.BuildV4Options(r.GetPort())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, req, session, r.GetPodSandboxId(), "", ports,
			idleTimeout, creationTimeout, portforward.SupportedProtocols)
	default:
		http.NotFound(w, req)
	}
}

type connKey struct{}

// connListener accepts connections that tell when the client has gone.
type connListener struct{ net.Listener }

func (l connListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn ends its context when it breaks: the library reads on while a stream is
// served, and does not tell the service what it finds.
type conn struct {
	net.Conn
	gone  context.CancelFunc // set before the first Read
	taken atomic.Bool        // from the http.Server, to be streams
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.gone()
	}
	return n, err
}

// A gate lets calls in until it is closed, and closes when all have left.
type gate struct {
	mu     sync.Mutex
	closed bool // guarded by mu
	inside sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

func (g *gate) leave() { g.inside.Done() }

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
