package server

import (
	"context"
	"io"
	"net/http"
)

// A LogQuery asks for what services of the node have logged.
type LogQuery struct{}

// Journal writes what services have logged to systemd's journal.
func Journal(ctx context.Context, q LogQuery, w io.Writer) error { return nil }

func (s *Server) logQuery(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusNotImplemented, "not yet\n")
}
