package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// healthRoutes registers /healthz, and a path below it for each check (rule sv-3), with any
// method.
func (s *Server) healthRoutes(mux *http.ServeMux) {
	checks := slices.Concat([]Check{{Name: "ping", Check: healthy}, {Name: "log", Check: healthy}}, s.cfg.Node.Checks)
	all := func(w http.ResponseWriter, r *http.Request) { s.health(w, r, checks) }
	mux.HandleFunc("/healthz", all)
	mux.HandleFunc("/healthz/{$}", all)
	for _, c := range checks {
		mux.HandleFunc("/healthz/"+c.Name, func(w http.ResponseWriter, _ *http.Request) {
			if err := c.Check(); err != nil {
				refuse(w, http.StatusInternalServerError, fmt.Sprintf("internal server error: %v\n", err))
				return
			}
			refuse(w, http.StatusOK, "ok")
		})
	}
}

// healthy is the check of ping and log: a server that responds is healthy, and logs are not
// buffered.
func healthy() error { return nil }

// health serves the result of all checks except those of ?exclude=: "ok", or a list of them
// with ?verbose or if one fails. Reasons are logged, and returned by the path of the check.
func (s *Server) health(w http.ResponseWriter, r *http.Request, checks []Check) {
	query := r.URL.Query()
	var lines strings.Builder
	var failed []string
	for _, c := range checks {
		if slices.Contains(query["exclude"], c.Name) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		if err := c.Check(); err != nil {
			failed = append(failed, c.Name)
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.Name)
			s.log.Error("Health check failed", "check", c.Name, "err", err)
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
	}
	switch _, verbose := query["verbose"]; {
	case len(failed) > 0:
		refuse(w, http.StatusInternalServerError, lines.String()+"healthz check failed\n")
	case verbose:
		refuse(w, http.StatusOK, lines.String()+"healthz check passed\n")
	default:
		refuse(w, http.StatusOK, "ok")
	}
}
