package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// healthRoutes are /healthz, and each check below it (sv-3). Any method will do.
func (s *Server) healthRoutes(mux *http.ServeMux) {
	checks := slices.Concat([]Check{{Name: "ping", Ask: well}, {Name: "log", Ask: well}}, s.cfg.Checks)
	all := func(w http.ResponseWriter, r *http.Request) { s.health(w, r, checks) }
	mux.HandleFunc("/healthz", all)
	mux.HandleFunc("/healthz/{$}", all)
	for _, c := range checks {
		mux.HandleFunc("/healthz/"+c.Name, func(w http.ResponseWriter, _ *http.Request) {
			if err := c.Ask(); err != nil {
				refuse(w, http.StatusInternalServerError, fmt.Sprintf("internal server error: %v\n", err))
				return
			}
			refuse(w, http.StatusOK, "ok")
		})
	}
}

// well: who can answer is; nothing that is logged waits in memory.
func well() error { return nil }

// health answers for all checks but those that ?exclude= names: "ok", or with
// ?verbose or a failure the list of them. Reasons are for the log and for who asks
// about one check.
func (s *Server) health(w http.ResponseWriter, r *http.Request, checks []Check) {
	query := r.URL.Query()
	var lines strings.Builder
	var failed []string
	for _, c := range checks {
		if slices.Contains(query["exclude"], c.Name) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		if err := c.Ask(); err != nil {
			failed = append(failed, c.Name)
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.Name)
			s.log.Error("a health check fails", "check", c.Name, "err", err)
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
