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

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

const (
	// defaultStreamIdle is streamingConnectionIdleTimeout where it is not given.
	defaultStreamIdle = 4 * time.Hour

	// streamCreation is how long a client may take from connecting to opening its
	// streams. For so long one may be waited for that has gone.
	streamCreation = 15 * time.Second

	// retryAfter is what clients are told to wait, in seconds, when a runtime has too
	// many streams that nobody has come for (sv-9).
	retryAfter = 5

	// maxForm bounds what is read of options that come as a form, in bytes.
	maxForm = 1 << 20
)

// streamRoutes are /exec, /attach, /portForward and /run.
func (s *Server) streamRoutes() {
	if s.cfg.Runtime == nil {
		return
	}
	s.creation = streamCreation
	through := s.newPassage()
	for path, answer := range map[string]http.HandlerFunc{
		"exec":   func(w http.ResponseWriter, r *http.Request) { s.exec(w, r, through) },
		"attach": func(w http.ResponseWriter, r *http.Request) { s.attach(w, r, through) },
	} {
		for _, method := range []string{"GET", "POST"} {
			s.mux.HandleFunc(method+" /"+path+"/{namespace}/{pod}/{container}", answer)
			s.mux.HandleFunc(method+" /"+path+"/{namespace}/{pod}/{uid}/{container}", answer)
		}
	}
	forward := func(w http.ResponseWriter, r *http.Request) { s.portForward(w, r, through) }
	for _, method := range []string{"GET", "POST"} {
		s.mux.HandleFunc(method+" /portForward/{namespace}/{pod}", forward)
		s.mux.HandleFunc(method+" /portForward/{namespace}/{pod}/{uid}", forward)
	}
	s.mux.HandleFunc("POST /run/{namespace}/{pod}/{container}", s.run)
	s.mux.HandleFunc("POST /run/{namespace}/{pod}/{uid}/{container}", s.run)
}

func (s *Server) streamLimits() streamserver.Timeouts {
	return streamserver.Timeouts{Idle: max(0, cmp.Or(s.cfg.StreamIdle, defaultStreamIdle)), Creation: s.creation}
}

// A refusal is an answer to who may ask, but not for this.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

// isRefused answers for an error, if it is one, with the code that sv-9 has for it.
func (s *Server) isRefused(w http.ResponseWriter, r *http.Request, err error) bool {
	var no refusal
	switch {
	case err == nil:
		return false
	case errors.As(err, &no):
	case errors.Is(err, runtime.ErrNotFound):
		no = refusal{http.StatusNotFound, err.Error()}
	case status.Code(err) == codes.ResourceExhausted:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		no = refusal{http.StatusTooManyRequests, err.Error()}
	default:
		s.log.Error("a stream can't be had", "path", r.URL.Path, "err", err)
		no = refusal{http.StatusInternalServerError, err.Error()}
	}
	refuse(w, no.code, no.text)
	return true
}

// streamOptions reads which streams a client will have (sv-8).
func streamOptions(w http.ResponseWriter, r *http.Request) (runtime.StreamOptions, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return runtime.StreamOptions{}, refusal{http.StatusBadRequest, "the options can't be read: " + err.Error()}
	}
	on := func(name string) bool { return r.Form.Get(name) == "1" }
	want := runtime.StreamOptions{Stdin: on("input"), Stdout: on("output"), Stderr: on("error"), TTY: on("tty")}
	if want.TTY {
		want.Stderr = false // it comes out of the terminal
	}
	if !want.Stdin && !want.Stdout && !want.Stderr {
		return want, refusal{http.StatusBadRequest, "you must specify at least 1 of stdin, stdout, stderr"}
	}
	return want, nil
}

// podOf finds the pod that a request is about (sv-7). A UID in the path must be that of
// the named pod: a client that names another means a pod that has been replaced.
func (s *Server) podOf(r *http.Request) (*v1.Pod, error) {
	pod, ok := s.cfg.Pods.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if !ok {
		return nil, refusal{http.StatusNotFound, "pod does not exist"}
	}
	if uid := r.PathValue("uid"); uid != "" && uid != string(pod.UID) {
		return nil, refusal{http.StatusNotFound, "pod not found"}
	}
	return pod, nil
}

// containerOf finds the running container that a request is about.
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
	return "", refusal{http.StatusNotFound, fmt.Sprintf("container not found (%q)", name)}
}

// upgradeOf refuses who does not want to go on in another protocol (sv-9).
func upgradeOf(r *http.Request) error {
	if !httpstream.IsUpgradeRequest(r) {
		return refusal{http.StatusBadRequest, "Upgrade request required"}
	}
	return nil
}

// asked reads what /exec and /attach are about: a running container, and which streams.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) (id string, want runtime.StreamOptions, err error) {
	if want, err = streamOptions(w, r); err != nil {
		return "", want, err
	}
	if id, err = s.containerOf(r); err != nil {
		return "", want, err
	}
	return id, want, upgradeOf(r)
}

// passedOn has the runtime's own server answer, if it has one and the streams do not end
// here, as those of clients do who speak what such servers don't; it reports whether it
// did.
func (s *Server) passedOn(w http.ResponseWriter, r *http.Request, through *passage, endHere bool, where func(runtime.StreamServer) (*url.URL, error)) bool {
	there, ok := runtime.As[runtime.StreamServer](s.cfg.Runtime)
	if !ok || endHere {
		return false
	}
	u, err := where(there)
	if errors.Is(err, runtime.ErrUnsupported) {
		return false
	}
	if !s.isRefused(w, r, err) {
		through.serve(w, r, u)
	}
	return true
}

// exec answers /exec: a command in a container, with its streams.
func (s *Server) exec(w http.ResponseWriter, r *http.Request, through *passage) {
	id, want, err := s.asked(w, r)
	if s.isRefused(w, r, err) {
		return
	}
	cmd := r.Form["command"]
	execer, here := runtime.As[runtime.StreamExecer](s.cfg.Runtime)
	switch {
	case s.passedOn(w, r, through, here && streamserver.WantsV5(r), func(there runtime.StreamServer) (*url.URL, error) {
		return there.ExecURL(r.Context(), id, cmd, want)
	}):
	case !here:
		refuse(w, http.StatusNotFound, "this node's runtime runs no commands with streams")
	default:
		streamserver.Exec(w, r, want, s.streamLimits(), func(ctx context.Context, streams runtime.Streams) (int32, error) {
			return execer.StreamExec(ctx, id, cmd, streams)
		})
	}
}

// attach answers /attach: the streams of a container.
func (s *Server) attach(w http.ResponseWriter, r *http.Request, through *passage) {
	id, want, err := s.asked(w, r)
	if s.isRefused(w, r, err) {
		return
	}
	attacher, here := runtime.As[runtime.Attacher](s.cfg.Runtime)
	switch {
	case s.passedOn(w, r, through, here && streamserver.WantsV5(r), func(there runtime.StreamServer) (*url.URL, error) {
		return there.AttachURL(r.Context(), id, want)
	}):
	case !here:
		refuse(w, http.StatusNotFound, "this node's runtime attaches to no containers")
	default:
		streamserver.Attach(w, r, want, s.streamLimits(), func(ctx context.Context, streams runtime.Streams) error {
			return attacher.Attach(ctx, id, streams)
		})
	}
}
