package server

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"time"
)

// instrument calls the hooks for each request (rule sv-12).
func (s *Server) instrument(serverType string, next http.Handler) http.Handler {
	if s.cfg.Hooks.Request == nil && s.cfg.Hooks.Started == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := RequestInfo{Method: methodLabel(r.Method), Path: s.pathLabel(r.URL.Path), ServerType: serverType, LongRunning: longRunning(r.URL.Path)}
		if s.cfg.Hooks.Started != nil {
			s.cfg.Hooks.Started(info)
		}
		start := time.Now()
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() {
			info.Code, info.Seconds = recorder.result(), time.Since(start).Seconds()
			if s.cfg.Hooks.Request != nil {
				s.cfg.Hooks.Request(info)
			}
		}()
		next.ServeHTTP(recorder.wrapped(), r)
	})
}

// pathLabel returns the label of a path: its first segment, two segments below /metrics,
// and "other" for unknown paths, so that the number of labels is bounded.
func (s *Server) pathLabel(path string) string {
	first := firstSegment(path)
	switch _, known := areas[first]; {
	case first == "metrics":
		whole := strings.TrimSuffix(path, "/")
		if _, known := s.cfg.Node.Metrics[whole]; known || whole == "/metrics" {
			return strings.TrimPrefix(whole, "/")
		}
		return "other"
	case known:
		return first
	}
	return "other"
}

// methodLabel returns the label of a method; unknown ones are "other", so that the number
// of labels is bounded. PATCH is unknown, as with the kubelet: no route accepts it.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "other"
}

// longRunning reports whether the duration of a request depends on the client (rule sv-12).
func longRunning(path string) bool {
	switch firstSegment(path) {
	case "exec", "attach", "portForward", "debug":
		return true
	}
	return false
}

// A statusRecorder records the status code of a response.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

// A hijackRecorder is a statusRecorder of a connection that can be hijacked, such as those
// of HTTP/1.
type hijackRecorder struct {
	*statusRecorder
	http.Hijacker
}

// wrapped returns a writer that is an http.Hijacker if the underlying one is.
func (w *statusRecorder) wrapped() http.ResponseWriter {
	if h, ok := w.ResponseWriter.(http.Hijacker); ok {
		return hijackRecorder{w, h}
	}
	return w
}

func (w hijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := w.Hijacker.Hijack()
	if err == nil && w.code == 0 {
		w.code = http.StatusSwitchingProtocols
	}
	return c, rw, err
}

func (w *statusRecorder) WriteHeader(code int) {
	if w.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusRecorder) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (w *statusRecorder) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap implements the interface of http.ResponseController.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusRecorder) result() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}
