package server

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"
)

// A Server is the kubelet's API as an http.Handler. It listens nowhere and runs
// nothing: a Listener does.
type Server struct {
	cfg  Config
	log  *slog.Logger
	mux  *http.ServeMux // of all routes; who comes here has been let in
	full http.Handler

	creation time.Duration // streamCreation, but for tests

	readOnly, healthz http.Handler
}

// New checks cfg and returns a server that listens nowhere.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Logger, mux: http.NewServeMux()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.healthRoutes(s.mux)
	s.openRoutes(s.mux)
	s.nodeRoutes()
	s.logRoutes()
	s.streamRoutes()
	s.full = s.told("readwrite", s.guarded(s.switched(s.cfg.Debugging, s.mux)))

	open := http.NewServeMux()
	s.healthRoutes(open)
	s.openRoutes(open)
	s.readOnly = s.told("readonly", s.switched(Debugging{}, open))

	health := http.NewServeMux()
	s.healthRoutes(health)
	s.healthz = health
	return s, nil
}

// ServeHTTP answers a request of the authenticated port (10250).
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.full.ServeHTTP(w, r) }

// ReadOnly answers what may be known to everybody who can reach the port (10255):
// pods, stats, metrics and health. It asks nobody who he is. What could change
// something is 405.
func (s *Server) ReadOnly() http.Handler { return s.readOnly }

// Healthz answers /healthz and what is below it, and nothing else (10248). It asks
// nobody who he is.
func (s *Server) Healthz() http.Handler { return s.healthz }

// openRoutes are those of ReadOnly as well.
func (s *Server) openRoutes(mux *http.ServeMux) {
	both(mux, "GET", "/pods", s.pods)
	if s.cfg.Summary != nil {
		both(mux, "GET", "/stats/summary", s.summary)
		both(mux, "POST", "/stats/summary", s.summary) // st-15
	}
	for _, path := range slices.Sorted(maps.Keys(s.cfg.Metrics)) {
		both(mux, "GET", path, s.cfg.Metrics[path].ServeHTTP)
	}
}

// nodeRoutes are those about the node that are for people who have been let in.
func (s *Server) nodeRoutes() {
	both(s.mux, "GET", "/configz", s.configz)
	for path, h := range s.cfg.Handlers {
		s.mux.Handle(path, h)
	}
	if s.cfg.Runtime != nil {
		both(s.mux, "GET", "/runningpods", s.runningPods)
		s.mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", s.checkpoint)
	}
	s.nodeLogRoutes()
	s.debugRoutes()
}

// both registers a path with and without a slash at its end.
func both(mux *http.ServeMux, method, path string, h http.HandlerFunc) {
	mux.HandleFunc(method+" "+path, h)
	mux.HandleFunc(method+" "+path+"/{$}", h)
}

// switched answers for routes that have been switched off (sv-6).
func (s *Server) switched(on Debugging, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := on.off(r.URL.Path); why != "" {
			refuse(w, http.StatusMethodNotAllowed, why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// contextKey is of values that the Listener gives a request.
type contextKey int

const strangerKey contextKey = iota

// trust tells the Listener that who asks on this connection has been let in.
func trust(ctx context.Context) {
	if c, ok := ctx.Value(strangerKey).(*conn); ok {
		c.trusted()
	}
}
