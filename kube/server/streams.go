package server

// streamRoutes are /exec, /attach, /portForward and /run.
func (s *Server) streamRoutes() {}
