package server

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Server is the kubelet's API as an http.Handler. It does not listen; see Listener.
type Server struct {
	cfg  Config
	log  *slog.Logger
	mux  *http.ServeMux // all routes; requests are authorized
	full http.Handler

	creation time.Duration // streamCreation, except in tests

	readOnly, healthz http.Handler

	refusals refusals
}

// New returns a Server, or an error that names the field of cfg that is invalid.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := compose.Check(cfg.Runtime, reflect.TypeFor[runtime.Execer](), reflect.TypeFor[runtime.StreamExecer](), reflect.TypeFor[runtime.StreamServer](), reflect.TypeFor[runtime.Attacher](),
		reflect.TypeFor[runtime.PortForwarder](), reflect.TypeFor[runtime.LogReader](), reflect.TypeFor[runtime.Checkpointer]()); err != nil {
		return nil, fmt.Errorf("server: Config.Runtime: %w", err)
	}
	s := &Server{cfg: cfg, log: cfg.Logger, mux: http.NewServeMux()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = slog.New(logs.Bounded(s.log.Handler())) // clients choose paths and names
	s.healthRoutes(s.mux)
	s.openRoutes(s.mux)
	s.nodeRoutes()
	s.logRoutes()
	s.streamRoutes()
	s.full = s.instrument("readwrite", s.authorize(s.trace("readwrite", s.mux, s.checkEnabled(s.cfg.Debugging, s.mux))))

	open := http.NewServeMux()
	s.healthRoutes(open)
	s.openRoutes(open)
	s.readOnly = s.instrument("readonly", s.trace("readonly", open, s.checkEnabled(Debugging{}, open)))

	health := http.NewServeMux()
	s.healthRoutes(health)
	s.healthz = health
	return s, nil
}

// ServeHTTP serves the authenticated port (10250).
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.full.ServeHTTP(w, r) }

// ReadOnly returns the handler of the read-only port (10255): pods, stats, metrics and
// health. Requests are not authenticated. The response to methods that could change
// something is 405.
func (s *Server) ReadOnly() http.Handler { return s.readOnly }

// Healthz returns the handler of the health port (10248): /healthz and the paths below it.
// Requests are not authenticated.
func (s *Server) Healthz() http.Handler { return s.healthz }

// openRoutes registers the routes that ReadOnly serves too.
func (s *Server) openRoutes(mux *http.ServeMux) {
	both(mux, "GET", "/pods", s.pods)
	if s.cfg.Node.Stats != nil {
		both(mux, "GET", "/stats/summary", s.summary)
		both(mux, "POST", "/stats/summary", s.summary) // rule st-15
	}
	for _, path := range slices.Sorted(maps.Keys(s.cfg.Node.Metrics)) {
		both(mux, "GET", path, s.cfg.Node.Metrics[path].ServeHTTP)
	}
}

// nodeRoutes registers the routes of the node that require authorization.
func (s *Server) nodeRoutes() {
	both(s.mux, "GET", "/configz", s.configz)
	for path, h := range s.cfg.Handlers {
		s.mux.Handle(path, h)
	}
	if s.cfg.Runtime != nil {
		both(s.mux, "GET", "/runningpods", s.runningPods)
		s.mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", s.checkpoint)
	}
	s.zpageRoutes()
	s.nodeLogRoutes()
	s.debugRoutes()
}

// both registers a path with and without a trailing slash.
func both(mux *http.ServeMux, method, path string, h http.HandlerFunc) {
	mux.HandleFunc(method+" "+path, h)
	mux.HandleFunc(method+" "+path+"/{$}", h)
}

// checkEnabled responds with 405 for routes that are disabled (rule sv-6).
func (s *Server) checkEnabled(on Debugging, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := on.disabled(r.URL.Path); reason != "" {
			refuse(w, http.StatusMethodNotAllowed, reason)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// A contextKey is the key of a value that the Listener adds to the context of requests.
type contextKey int

const connectionKey contextKey = iota

// markAuthenticated marks the connection of a request as authenticated, if a Listener
// accepted it.
func markAuthenticated(ctx context.Context) {
	if c, ok := ctx.Value(connectionKey).(*connection); ok {
		c.requestAuthorized()
	}
}
