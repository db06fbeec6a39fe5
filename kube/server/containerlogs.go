package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/internal/podlog"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// A LogReader reads the log files of a container. It must be safe for concurrent use. Its
// errors, other than those of w and ctx, are returned to the client.
type LogReader interface {
	Read(ctx context.Context, req logread.Request, w io.Writer) error
}

// ContainerLogs configures /containerLogs. The zero value is the behavior of the kubelet.
type ContainerLogs struct {
	// Reader reads log files. Nil: that of package logread, which continues in rotated
	// files.
	Reader LogReader

	// NoSplitStreams rejects requests for one of the streams stdout and stderr, as a
	// kubelet without the feature gate PodLogsQuerySplitStreams does.
	NoSplitStreams bool

	// Trailer sends the HTTP trailer Kubeparts-Log-Error after each log: missing lines and
	// the error that ended it early, or an empty value. Marker reports them in lines of the
	// log, where they occurred. Without either, the connection of a log that ends early is
	// closed, and missing lines are not reported.
	Trailer, Marker bool
}

// LogErrorTrailer is the name of the trailer; see ContainerLogs.Trailer.
const LogErrorTrailer = "Kubeparts-Log-Error"

// logRoutes registers /containerLogs.
func (s *Server) logRoutes() {
	reader := s.cfg.Containers.Logs.Reader
	if reader == nil {
		reader, _ = logread.New(logread.Config{Logger: s.log}) // the zero value is valid
	}
	running := newRunningContainers(s.cfg.Runtime)
	s.mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		s.containerLogs(w, r, reader, running)
	})
}

// containerLogs serves /containerLogs/{namespace}/{pod}/{container}.
func (s *Server) containerLogs(w http.ResponseWriter, r *http.Request, reader LogReader, running *runningContainers) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	for _, part := range []string{namespace, name, container} {
		if wrong := content.IsPathSegmentName(part); len(wrong) > 0 {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("invalid name %q: %s", part, wrong[0]))
			return
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	var opts v1.PodLogOptions
	if err == nil {
		opts, err = decodeLogOptions(query)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, `{"message": "Unable to decode query."}`)
		return
	}
	if !podlog.Valid(&opts) {
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
		refuse(w, http.StatusInternalServerError, "streaming is not supported by the connection")
		return
	}
	paths, ok := compose.As[runtime.LogReader](s.cfg.Runtime)
	if !ok {
		refuse(w, http.StatusNotFound, "container logs are not supported by this node")
		return
	}
	req := podlog.Request(&opts, time.Now())
	if s.cfg.Containers.Logs.NoSplitStreams && req.Stream != logread.All {
		refuse(w, http.StatusBadRequest, "the streams of a log cannot be requested separately")
		return
	}
	id, err := podlog.ContainerID(name, &pod.Status, container, opts.Previous)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	path, err := paths.LogPath(r.Context(), id)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	out := newLogWriter(w, s.cfg.Containers.Logs)
	req.Path, req.Gap = path, out.gap
	req.Running = func(ctx context.Context) (bool, error) {
		out.begin() // the client of a container without output receives the header
		return running.isRunning(ctx, id)
	}
	err = reader.Read(r.Context(), req, out)
	if r.Context().Err() != nil || out.failed != nil {
		return // the client has closed the connection
	}
	if err != nil {
		s.log.Warn("Failed to read container log", "pod", namespace+"/"+name, "containerName", container, "err", err)
	}
	out.end(err)
}

// canFlush reports whether w supports flushing.
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
