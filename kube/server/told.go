package server

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"time"
)

// told tells the hooks of each request (sv-12).
func (s *Server) told(serverType string, next http.Handler) http.Handler {
	if s.cfg.Hooks.Request == nil && s.cfg.Hooks.Started == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := RequestInfo{Method: methodLabel(r.Method), Path: s.pathLabel(r.URL.Path), ServerType: serverType, LongRunning: longRunning(r.URL.Path)}
		if s.cfg.Hooks.Started != nil {
			s.cfg.Hooks.Started(info)
		}
		begun := time.Now()
		seen := &seenCode{ResponseWriter: w}
		defer func() {
			info.Code, info.Seconds = seen.result(), time.Since(begun).Seconds()
			if s.cfg.Hooks.Request != nil {
				s.cfg.Hooks.Request(info)
			}
		}()
		next.ServeHTTP(seen.wrapped(), r)
	})
}

// pathLabel is a path as metrics have it: its first segment, two of metrics, and
// "other" for what there is not, so that nobody can make labels without end.
func (s *Server) pathLabel(path string) string {
	first := firstSegment(path)
	switch _, known := areas[first]; {
	case first == "metrics":
		whole := strings.TrimSuffix(path, "/")
		if _, known := s.cfg.Metrics[whole]; known || whole == "/metrics" {
			return strings.TrimPrefix(whole, "/")
		}
		return "other"
	case known:
		return first
	}
	return "other"
}

// methodLabel is a method as metrics have it: nobody can make labels without end. PATCH
// is one of the others, as on a kubelet: no route takes it.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "other"
}

// longRunning tells of requests that last as long as who makes them likes (sv-12).
func longRunning(path string) bool {
	switch firstSegment(path) {
	case "exec", "attach", "portForward", "debug":
		return true
	}
	return false
}

// A seenCode remembers what was answered.
type seenCode struct {
	http.ResponseWriter
	code int
}

// A seenConn is a seenCode of a connection that can be taken over, as those of HTTP/1
// can.
type seenConn struct {
	*seenCode
	http.Hijacker
}

// wrapped returns the writer that has the powers of the one it is around.
func (w *seenCode) wrapped() http.ResponseWriter {
	if h, ok := w.ResponseWriter.(http.Hijacker); ok {
		return seenConn{w, h}
	}
	return w
}

func (w seenConn) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := w.Hijacker.Hijack()
	if err == nil && w.code == 0 {
		w.code = http.StatusSwitchingProtocols
	}
	return c, rw, err
}

func (w *seenCode) WriteHeader(code int) {
	if w.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *seenCode) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (w *seenCode) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *seenCode) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *seenCode) result() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}
