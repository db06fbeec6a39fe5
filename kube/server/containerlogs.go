package server

// logRoutes are /containerLogs.
func (s *Server) logRoutes() {}
