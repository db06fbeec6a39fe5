package server

import "net/http"

// A LogQuery asks for what services of the node have logged.
type LogQuery struct{}

func (s *Server) logQuery(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusNotImplemented, "not yet\n")
}
