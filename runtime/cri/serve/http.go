package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/gate"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

const (
	// idleTimeout is the maximum time without traffic on a connection, as in
	// containerd.
	idleTimeout = 4 * time.Hour

	// creationTimeout is the maximum time from the connection of a client until it has
	// opened its streams. The library waits that long also for a client that has
	// disconnected.
	creationTimeout = 10 * time.Second
)

// serveStreams serves the URLs until ctx is done, and returns when all streams are
// closed.
func (s *Server) serveStreams(ctx context.Context, listener net.Listener) error {
	var sessions gate.Gate
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if sessions.Enter() {
				defer sessions.Leave()
				s.serveStream(w, req)
			}
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: creationTimeout,
		IdleTimeout:       creationTimeout, // of a client with an invalid URL
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(listener)
	sessions.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serveStream serves one connection. It returns when the streams are no longer used.
func (s *Server) serveStream(w http.ResponseWriter, req *http.Request) {
	server := streamserver.Server{Idle: idleTimeout, Creation: s.creation}
	switch r := s.urls.take(req.URL.Path).(type) {
	case *runtimeapi.ExecRequest:
		want := runtime.StreamOptions{Stdin: r.GetStdin(), Stdout: r.GetStdout(), Stderr: r.GetStderr(), TTY: r.GetTty()}
		server.Exec(w, req, want, func(ctx context.Context, streams runtime.Streams) (int32, error) {
			return s.cfg.Streams.StreamExec(ctx, r.GetContainerId(), r.GetCmd(), streams)
		})
	case *runtimeapi.AttachRequest:
		want := runtime.StreamOptions{Stdin: r.GetStdin(), Stdout: r.GetStdout(), Stderr: r.GetStderr(), TTY: r.GetTty()}
		server.Attach(w, req, want, func(ctx context.Context, streams runtime.Streams) error {
			return s.cfg.Streams.StreamAttach(ctx, r.GetContainerId(), streams)
		})
	case *runtimeapi.PortForwardRequest:
		server.PortForward(w, req, r.GetPort(), func(ctx context.Context, port int32, conn io.ReadWriteCloser) error {
			return s.cfg.Streams.StreamPortForward(ctx, r.GetPodSandboxId(), port, conn)
		})
	default:
		http.NotFound(w, req)
	}
}
