package server

import (
	"net/http"
)

// A Server is the kubelet's API as an http.Handler.
type Server struct {
	cfg Config
	mux *http.ServeMux
}

// New checks cfg and returns a server that listens nowhere.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux()}
	s.logRoutes()
	s.streamRoutes()
	return s, nil
}

// ServeHTTP answers a request of the authenticated port (10250).
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }
