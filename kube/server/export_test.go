package server

import "time"

var (
	JournalArgs   = journalArgs
	ParseLogQuery = parseLogQuery
)

// SetStreamCreation sets the time in which clients must open their streams.
func (s *Server) SetStreamCreation(d time.Duration) { s.creation = d }
