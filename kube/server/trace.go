package server

import (
	"net/http"
	"strings"
)

// trace calls Config.Trace for each request that next serves with the routes of mux.
func (s *Server) trace(serverType string, mux *http.ServeMux, next http.Handler) http.Handler {
	if s.cfg.Trace == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		ctx, end := s.cfg.Trace(r, route(pattern), serverType)
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() { end(recorder.result()) }()
		next.ServeHTTP(recorder.wrapped(), r.WithContext(ctx))
	})
}

// route returns the path of a pattern of a ServeMux, with and without a trailing slash
// alike.
func route(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	return strings.TrimSuffix(pattern, "/{$}")
}
