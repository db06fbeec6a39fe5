package server

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
)

// nodeLogRoutes are /logs and the files below it.
func (s *Server) nodeLogRoutes() {
	if s.cfg.NodeLogs == nil {
		return
	}
	files := http.StripPrefix("/logs/", http.FileServerFS(plainFiles{s.cfg.NodeLogs}))
	serve := func(w http.ResponseWriter, r *http.Request) {
		isTop := strings.Trim(r.URL.Path, "/") == "logs"
		switch {
		case isTop && r.URL.Query().Has("query") && !s.cfg.Debugging.NodeLogQuery:
			refuse(w, http.StatusMethodNotAllowed, "log queries are disabled.")
		case isTop && r.URL.Query().Has("query"):
			s.logQuery(w, r)
		case r.URL.Path == "/logs":
			w.Header().Set("Location", "logs/") // below whatever proxy this is asked through
			w.WriteHeader(http.StatusMovedPermanently)
		default:
			w.Header().Set("X-Content-Type-Options", "nosniff")
			files.ServeHTTP(w, r)
		}
	}
	s.mux.HandleFunc("GET /logs", serve)
	s.mux.HandleFunc("GET /logs/", serve)
}

// plainFiles has the regular files and directories of a file system only: to open a
// pipe waits for who writes to it, and to open a device does things.
type plainFiles struct{ in fs.FS }

// Open implements fs.FS.
func (p plainFiles) Open(name string) (fs.File, error) {
	info, err := fs.Stat(p.in, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// A link that leads out of an os.Root is an error of its own kind.
		err = &fs.PathError{Op: "open", Path: name, Err: errors.Join(fs.ErrPermission, err)}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.Join(fs.ErrNotExist, errors.New("neither a file nor a directory"))}
	}
	return p.in.Open(name)
}
