package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// run serves /run: the output of a command. Its arguments are separated by single spaces
// and cannot contain any.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	id, err := s.containerOf(r)
	if s.respondError(w, r, err) {
		return
	}
	execer, ok := compose.As[runtime.Execer](s.cfg.Runtime)
	if !ok {
		refuse(w, http.StatusNotFound, "commands are not supported by the runtime of this node")
		return
	}
	cmd := r.URL.Query().Get("cmd")
	result, err := execer.Exec(r.Context(), id, strings.Split(cmd, " "), 0)
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("command '%s' exited with %d: %s", cmd, result.ExitCode, result.Stderr)
	}
	if s.respondError(w, r, err) {
		return
	}
	// As with the kubelet, whatever the command writes.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(result.Stdout, result.Stderr...)) // fails only if the client has closed the connection
}
