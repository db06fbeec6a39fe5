package server

import "time"

// SetStreamCreation sets the time in which clients must open their streams.
func (s *Server) SetStreamCreation(d time.Duration) { s.creation = d }
