package server

import "time"

// SetStreamCreation is how long clients may take to open their streams.
func (s *Server) SetStreamCreation(d time.Duration) { s.creation = d }
