package server

import (
	"errors"
	"io/fs"
	"net/http"
)

// nodeLogRoutes are /logs and the files below it.
func (s *Server) nodeLogRoutes() {
	if s.cfg.NodeLogs == nil {
		return
	}
	files := http.StripPrefix("/logs/", http.FileServerFS(plainFiles{s.cfg.NodeLogs}))
	s.mux.HandleFunc("GET /logs", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "logs/", http.StatusMovedPermanently)
	})
	s.mux.HandleFunc("GET /logs/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("query") && s.cfg.Debugging.NodeLogQuery {
			s.logQuery(w, r)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		files.ServeHTTP(w, r)
	})
}

// plainFiles has the regular files and directories of a file system only: to open a
// pipe waits for who writes to it, and to open a device does things.
type plainFiles struct{ in fs.FS }

// Open implements fs.FS.
func (p plainFiles) Open(name string) (fs.File, error) {
	info, err := fs.Stat(p.in, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.Join(fs.ErrNotExist, errors.New("neither a file nor a directory"))}
	}
	return p.in.Open(name)
}
