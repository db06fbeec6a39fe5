package server

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
)

// nodeLogRoutes registers /logs and the files below it.
func (s *Server) nodeLogRoutes() {
	if s.cfg.Node.Logs == nil {
		return
	}
	files := http.StripPrefix("/logs/", http.FileServerFS(plainFiles{s.cfg.Node.Logs}))
	serve := func(w http.ResponseWriter, r *http.Request) {
		isTop := strings.Trim(r.URL.Path, "/") == "logs"
		switch {
		case isTop && r.URL.Query().Has("query") && !s.cfg.Debugging.NodeLogQuery:
			refuse(w, http.StatusMethodNotAllowed, "log queries are disabled.")
		case isTop && r.URL.Query().Has("query"):
			s.logQuery(w, r)
		case r.URL.Path == "/logs":
			w.Header().Set("Location", "logs/") // relative, for clients behind a proxy
			w.WriteHeader(http.StatusMovedPermanently)
		default:
			w.Header().Set("X-Content-Type-Options", "nosniff")
			files.ServeHTTP(w, r)
		}
	}
	s.mux.HandleFunc("GET /logs", serve)
	s.mux.HandleFunc("GET /logs/", serve)
}

// plainFiles contains the regular files and directories of a file system: opening a pipe
// blocks until it has a writer, and opening a device may have side effects.
type plainFiles struct{ in fs.FS }

// Open implements fs.FS.
func (p plainFiles) Open(name string) (fs.File, error) {
	info, err := fs.Stat(p.in, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// An os.Root reports a link out of its directory with another error.
		err = &fs.PathError{Op: "open", Path: name, Err: errors.Join(fs.ErrPermission, err)}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.Join(fs.ErrNotExist, errors.New("not a regular file or directory"))}
	}
	return p.in.Open(name)
}
