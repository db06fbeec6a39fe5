package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/kubeparts/kubeparts/runtime"
)

// run answers /run: the output of a command, which is words with one space between
// them. There is no way to have a space in a word.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	id, err := s.containerOf(r)
	if s.isRefused(w, r, err) {
		return
	}
	does, can := runtime.As[runtime.Execer](s.cfg.Runtime)
	if !can {
		refuse(w, http.StatusNotFound, "this node's runtime runs no commands")
		return
	}
	cmd := r.URL.Query().Get("cmd")
	result, err := does.Exec(r.Context(), id, strings.Split(cmd, " "), 0)
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("command '%s' exited with %d: %s", cmd, result.ExitCode, result.Stderr)
	}
	if s.isRefused(w, r, err) {
		return
	}
	// What it is, nobody knows; who uses this expects to be told that it is JSON.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(result.Stdout, result.Stderr...)) // fails only if the client has gone
}
