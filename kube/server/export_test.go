package server

import "time"

// SetStreamCreation is how long clients may take to open their streams.
func (s *Server) SetStreamCreation(d time.Duration) { s.creation = d }

// LogContainer is tried with what a server would need many pods for.
var LogContainer = logContainer
