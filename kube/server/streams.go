package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

const (
	// defaultStreamIdle is the default of streamingConnectionIdleTimeout.
	defaultStreamIdle = 4 * time.Hour

	// streamCreation bounds the time from the connection until the client has opened its
	// streams.
	streamCreation = 15 * time.Second

	// retryAfter is the Retry-After header, in seconds, when a runtime has too many
	// streams that no client has opened (rule sv-9).
	retryAfter = 5

	// maxForm bounds options in the body of a request, in bytes.
	maxForm = 1 << 20
)

// streamRoutes registers /exec, /attach, /portForward and /run.
func (s *Server) streamRoutes() {
	if s.cfg.Runtime == nil {
		return
	}
	s.creation = streamCreation
	proxy := s.newStreamProxy()
	for path, handler := range map[string]http.HandlerFunc{
		"exec":   func(w http.ResponseWriter, r *http.Request) { s.exec(w, r, proxy) },
		"attach": func(w http.ResponseWriter, r *http.Request) { s.attach(w, r, proxy) },
	} {
		for _, method := range []string{"GET", "POST"} {
			s.mux.HandleFunc(method+" /"+path+"/{namespace}/{pod}/{container}", handler)
			s.mux.HandleFunc(method+" /"+path+"/{namespace}/{pod}/{uid}/{container}", handler)
		}
	}
	forward := func(w http.ResponseWriter, r *http.Request) { s.portForward(w, r, proxy) }
	for _, method := range []string{"GET", "POST"} {
		s.mux.HandleFunc(method+" /portForward/{namespace}/{pod}", forward)
		s.mux.HandleFunc(method+" /portForward/{namespace}/{pod}/{uid}", forward)
	}
	s.mux.HandleFunc("POST /run/{namespace}/{pod}/{container}", s.run)
	s.mux.HandleFunc("POST /run/{namespace}/{pod}/{uid}/{container}", s.run)
}

func (s *Server) streams() streamserver.Server {
	return streamserver.Server{Idle: max(0, cmp.Or(s.cfg.Containers.StreamIdleTimeout, defaultStreamIdle)), Creation: s.creation}
}

// A httpError is an error with an HTTP status code.
type httpError struct {
	code int
	text string
}

func (e httpError) Error() string { return e.text }

// respondError responds to an error, if err is not nil, with the status code of rule sv-9.
// It reports whether it did.
func (s *Server) respondError(w http.ResponseWriter, r *http.Request, err error) bool {
	var response httpError
	switch {
	case err == nil:
		return false
	case errors.As(err, &response):
	case errors.Is(err, runtime.ErrNotFound):
		response = httpError{http.StatusNotFound, err.Error()}
	case status.Code(err) == codes.ResourceExhausted:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		response = httpError{http.StatusTooManyRequests, err.Error()}
	default:
		s.log.Error("Failed to open stream", "path", r.URL.Path, "err", err)
		response = httpError{http.StatusInternalServerError, err.Error()}
	}
	refuse(w, response.code, response.text)
	return true
}

// streamOptions returns the streams that the client requests (rule sv-8).
func streamOptions(w http.ResponseWriter, r *http.Request) (runtime.StreamOptions, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return runtime.StreamOptions{}, httpError{http.StatusBadRequest, "failed to parse the options: " + err.Error()}
	}
	on := func(name string) bool { return r.Form.Get(name) == "1" }
	want := runtime.StreamOptions{Stdin: on("input"), Stdout: on("output"), Stderr: on("error"), TTY: on("tty")}
	if want.TTY {
		want.Stderr = false // a terminal has one output
	}
	if !want.Stdin && !want.Stdout && !want.Stderr {
		return want, httpError{http.StatusBadRequest, "you must specify at least 1 of stdin, stdout, stderr"}
	}
	return want, nil
}

// podOf returns the pod of a request (rule sv-7). A UID in the path must be that of the
// pod: a request with another one is for a pod that was replaced.
func (s *Server) podOf(r *http.Request) (*v1.Pod, error) {
	pod, ok := s.cfg.Pods.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if !ok {
		return nil, httpError{http.StatusNotFound, "pod does not exist"}
	}
	if uid := r.PathValue("uid"); uid != "" && uid != string(pod.UID) {
		return nil, httpError{http.StatusNotFound, "pod not found"}
	}
	return pod, nil
}

// containerOf returns the ID of the running container of a request.
func (s *Server) containerOf(r *http.Request) (id string, err error) {
	pod, err := s.podOf(r)
	if err != nil {
		return "", err
	}
	name := r.PathValue("container")
	found, err := s.cfg.Runtime.PodStatus(r.Context(), pod.UID)
	if err != nil {
		return "", fmt.Errorf("server: pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for _, c := range found.Containers {
		if c.Name == name && c.State == runtime.ContainerRunning {
			return c.ID, nil
		}
	}
	return "", httpError{http.StatusNotFound, fmt.Sprintf("container not found (%q)", name)}
}

// checkUpgrade returns an error if the client does not request a protocol upgrade (rule
// sv-9).
func checkUpgrade(r *http.Request) error {
	if !httpstream.IsUpgradeRequest(r) {
		return httpError{http.StatusBadRequest, "Upgrade request required"}
	}
	return nil
}

// streamRequest returns the running container and the streams of a request for /exec or
// /attach.
func (s *Server) streamRequest(w http.ResponseWriter, r *http.Request) (id string, want runtime.StreamOptions, err error) {
	if want, err = streamOptions(w, r); err != nil {
		return "", want, err
	}
	if id, err = s.containerOf(r); err != nil {
		return "", want, err
	}
	return id, want, checkUpgrade(r)
}

// delegate connects the client with the streaming server of the runtime, if it has one and
// local is false. It reports whether it has responded. local is set for protocols that
// streaming servers do not support.
func (s *Server) delegate(w http.ResponseWriter, r *http.Request, proxy *streamProxy, local bool, url func(runtime.StreamServer) (*url.URL, error)) bool {
	server, ok := compose.As[runtime.StreamServer](s.cfg.Runtime)
	if !ok || local {
		return false
	}
	u, err := url(server)
	if errors.Is(err, runtime.ErrUnsupported) {
		return false
	}
	if !s.respondError(w, r, err) {
		proxy.serve(w, r, u)
	}
	return true
}

// exec serves /exec: a command in a container, with its streams.
func (s *Server) exec(w http.ResponseWriter, r *http.Request, proxy *streamProxy) {
	id, want, err := s.streamRequest(w, r)
	if s.respondError(w, r, err) {
		return
	}
	cmd := r.Form["command"]
	execer, ok := compose.As[runtime.StreamExecer](s.cfg.Runtime)
	switch {
	case s.delegate(w, r, proxy, ok && streamserver.RequestsV5(r), func(server runtime.StreamServer) (*url.URL, error) {
		return server.ExecURL(r.Context(), id, cmd, want)
	}):
	case !ok:
		refuse(w, http.StatusNotFound, "exec is not supported by the runtime of this node")
	default:
		s.streams().Exec(w, r, want, func(ctx context.Context, streams runtime.Streams) (int32, error) {
			return execer.StreamExec(ctx, id, cmd, streams)
		})
	}
}

// attach serves /attach: the streams of a container.
func (s *Server) attach(w http.ResponseWriter, r *http.Request, proxy *streamProxy) {
	id, want, err := s.streamRequest(w, r)
	if s.respondError(w, r, err) {
		return
	}
	attacher, ok := compose.As[runtime.Attacher](s.cfg.Runtime)
	switch {
	case s.delegate(w, r, proxy, ok && streamserver.RequestsV5(r), func(server runtime.StreamServer) (*url.URL, error) {
		return server.AttachURL(r.Context(), id, want)
	}):
	case !ok:
		refuse(w, http.StatusNotFound, "attach is not supported by the runtime of this node")
	default:
		s.streams().Attach(w, r, want, func(ctx context.Context, streams runtime.Streams) error {
			return attacher.Attach(ctx, id, streams)
		})
	}
}
