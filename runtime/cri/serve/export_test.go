package serve

import "time"

// SetCreation changes how long a client may take to open its streams.
func (s *Server) SetCreation(d time.Duration) { s.creation = d }
