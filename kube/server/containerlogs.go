package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/kubeparts/kubeparts/kube/internal/podlog"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// A LogReader reads the files that a runtime writes a container's log to. It is called
// from many goroutines at once. Its errors, but for those of w and ctx, are told to who
// asked.
type LogReader interface {
	Read(ctx context.Context, req logread.Request, w io.Writer) error
}

// ContainerLogs is how /containerLogs differs from the kubelet's.
type ContainerLogs struct {
	// Reader reads files. Nil: logread's, which sees across rotations (F-36).
	Reader LogReader

	// NoSplitStreams refuses to show one stream alone, as a kubelet without
	// PodLogsQuerySplitStreams does (la-3).
	NoSplitStreams bool

	// Trailer sends the HTTP trailer Kubeparts-Log-Error after each log, with what
	// is missing from it and why it ended early, or nothing; Marker says so in lines
	// of the log, at their places (F-73). Without either, a log that ends early ends
	// with its connection, and what is missing is not told.
	Trailer, Marker bool
}

// LogErrorTrailer is the name of the trailer of ContainerLogs.Trailer.
const LogErrorTrailer = "Kubeparts-Log-Error"

// logRoutes are /containerLogs.
func (s *Server) logRoutes() {
	reader := s.cfg.ContainerLogs.Reader
	if reader == nil {
		// The zero value is a right one.
		reader, _ = logread.New(logread.Config{Logger: s.log})
	}
	running := newAlive(s.cfg.Runtime)
	s.mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		s.containerLogs(w, r, reader, running)
	})
}

// containerLogs answers /containerLogs/{namespace}/{pod}/{container}.
func (s *Server) containerLogs(w http.ResponseWriter, r *http.Request, reader LogReader, running *alive) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	for _, part := range []string{namespace, name, container} {
		if wrong := content.IsPathSegmentName(part); len(wrong) > 0 {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("%q is no name: %s", part, wrong[0]))
			return
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	var want v1.PodLogOptions
	if err == nil {
		want, err = decodeLogOptions(query)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, `{"message": "Unable to decode query."}`)
		return
	}
	if !podlog.Valid(&want) {
		refuse(w, http.StatusUnprocessableEntity, `{"message": "Invalid request."}`)
		return
	}
	pod, ok := s.cfg.Pods.Pod(namespace, name)
	if !ok {
		refuse(w, http.StatusNotFound, fmt.Sprintf("pod %q does not exist", name))
		return
	}
	if !hasContainer(pod, container) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("container %q not found in pod %q", container, name))
		return
	}
	if !canFlush(w) {
		refuse(w, http.StatusInternalServerError, "the connection cannot be flushed")
		return
	}
	paths, ok := runtime.As[runtime.LogReader](s.cfg.Runtime)
	if !ok {
		refuse(w, http.StatusNotFound, "this node has no logs of containers")
		return
	}
	req := podlog.Request(&want, time.Now())
	if s.cfg.ContainerLogs.NoSplitStreams && req.Stream != logread.All {
		refuse(w, http.StatusBadRequest, "the streams of a log cannot be had one by one")
		return
	}
	id, err := podlog.ContainerID(name, &pod.Status, container, want.Previous)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	path, err := paths.LogPath(r.Context(), id)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	out := newLogWriter(w, s.cfg.ContainerLogs)
	req.Path, req.Gap = path, out.gap
	req.Running = func(ctx context.Context) (bool, error) {
		out.begin() // so that who follows a container that says nothing knows that he does
		return running.can(ctx, id)
	}
	err = reader.Read(r.Context(), req, out)
	if r.Context().Err() != nil || out.failed != nil {
		return // nobody listens any more
	}
	if err != nil {
		s.log.Warn("a log cannot be read", slog.Group("pod", "namespace", namespace, "name", name), "container", container, "err", err)
	}
	out.end(err)
}

// canFlush reports whether what is written to w can be sent at once.
func canFlush(w http.ResponseWriter) bool {
	for {
		if wrapped, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
			w = wrapped.Unwrap()
			continue
		}
		if _, ok := w.(http.Flusher); ok {
			return true
		}
		_, ok := w.(interface{ FlushError() error })
		return ok
	}
}
