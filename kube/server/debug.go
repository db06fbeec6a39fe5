package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
)

// debugRoutes registers /debug/pprof and /debug/flags/v.
func (s *Server) debugRoutes() {
	s.mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	s.mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	s.mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	s.mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	s.mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	s.mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if s.cfg.Debugging.SetVerbosity != nil {
		s.mux.HandleFunc("PUT /debug/flags/v", s.verbosity)
	}
}

// verbosity serves PUT /debug/flags/v, whose body is the level.
func (s *Server) verbosity(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
	if err != nil {
		refuse(w, http.StatusBadRequest, "failed to read the level\n")
		return
	}
	level, err := strconv.Atoi(strings.TrimSpace(string(body)))
	if err != nil || level < 0 {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("invalid level %q: want a number such as 4\n", body))
		return
	}
	s.cfg.Debugging.SetVerbosity(level)
	refuse(w, http.StatusOK, fmt.Sprintf("successfully set klog.logging.verbosity to %d", level))
}
