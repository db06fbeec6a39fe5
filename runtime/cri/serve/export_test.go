package serve

import "time"

// SetCreation sets the time in which a client must open its streams.
func (s *Server) SetCreation(d time.Duration) { s.creation = d }
