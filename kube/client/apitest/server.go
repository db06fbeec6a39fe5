package apitest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A Server is an in-memory API server. The zero value is ready to use. Its fields must be
// set before the first request; all methods are safe for concurrent use.
type Server struct {
	// Fault is called before each request and returns its failure; the zero Fault means
	// none. It may block, which adds latency. May be nil.
	Fault func(Call) Fault

	// NoWatchList rejects watch-lists as invalid, as servers without support do.
	NoWatchList bool

	// MaxBody is the maximum size of a request in bytes; larger ones result in 413. Zero: 3
	// MiB.
	MaxBody int64

	mu      sync.Mutex // guards the fields below
	table   store
	calls   []Call
	watches map[*watcher]struct{}
}

// A Call is one request.
type Call struct {
	At          time.Time
	Verb        string // get, list, watch, create, update, patch, delete
	Resource    string // "pods"
	Subresource string // "status"
	Namespace   string
	Name        string
	Selector    string // field selector
	Labels      string // label selector
	UserAgent   string
	Protobuf    bool   // the response is requested in protobuf
	Body        []byte // of a patch
}

// String returns the call in one line, such as "patch pods/status prod/web".
func (c Call) String() string {
	s := c.Verb + " " + c.Resource
	if c.Subresource != "" {
		s += "/" + c.Subresource
	}
	switch {
	case c.Name != "" && c.Namespace != "":
		s += " " + c.Namespace + "/" + c.Name
	case c.Name != "" || c.Namespace != "":
		s += " " + c.Namespace + c.Name
	}
	if c.Selector != "" {
		s += " " + c.Selector
	}
	if c.Labels != "" {
		s += " " + c.Labels
	}
	return s
}

// A Fault is a failure of a request.
type Fault struct {
	// Latency delays the request.
	Latency time.Duration

	// Code is the status code of the response, with Reason and Message, if any; the request
	// has no effect. RetryAfter is the header, in seconds.
	Code       int
	Reason     metav1.StatusReason
	Message    string
	RetryAfter int

	// Refuse fails the connection. Hang does not respond until the request is canceled.
	// LoseAnswer processes the request, and then fails the connection.
	Refuse, Hang, LoseAnswer bool
}

// ErrRefused is the error of failed connections.
var ErrRefused = errors.New("connection refused")

// RESTConfig returns a configuration that connects to the server without a network.
// Requests take no time except that of Fault, also in a synctest bubble.
func (s *Server) RESTConfig() *rest.Config {
	return &rest.Config{Host: "http://apitest", Transport: s}
}

// ServeHTTP implements http.Handler, for use with httptest.NewServer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if discover(w, r) {
		return
	}
	req, err := parse(r)
	if err != nil {
		writeError(w, err)
		return
	}
	limit := s.MaxBody
	if limit == 0 {
		limit = 3 << 20
	}
	if r.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
		if err != nil {
			return
		}
		req.body = body
		if req.Verb == "patch" {
			req.Body = body
		}
	}
	req.At = time.Now()
	s.mu.Lock()
	s.calls = append(s.calls, req.Call)
	s.mu.Unlock()

	var fault Fault
	if s.Fault != nil {
		fault = s.Fault(req.Call)
	}
	if fault.Latency > 0 {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(fault.Latency):
		}
	}
	switch {
	case fault.Refuse:
		panic(http.ErrAbortHandler)
	case fault.Hang:
		<-r.Context().Done()
		return
	case fault.Code != 0:
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(fault.RetryAfter))
		}
		writeError(w, fault.status())
		return
	case int64(len(req.body)) > limit:
		writeError(w, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit)))
		return
	}
	if req.Verb == "watch" {
		s.serveWatch(r.Context(), w, req)
		return
	}
	object, code, err := s.do(req)
	switch {
	case fault.LoseAnswer:
		panic(http.ErrAbortHandler)
	case err != nil:
		writeError(w, err)
	default:
		writeObject(w, req, object, code)
	}
}

func (f Fault) status() error {
	reason := f.Reason
	if reason == "" {
		reason = map[int]metav1.StatusReason{
			http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
			http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
			http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
			http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		}[f.Code]
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(f.Code), Reason: reason, Message: f.Message}
	if status.Message == "" {
		status.Message = http.StatusText(f.Code)
	}
	if f.RetryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(f.RetryAfter)}
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// Calls returns the recorded requests, in order, that match all of the words of their
// String in want, such as "patch", "pods/status".
func (s *Server) Calls(want ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if c.has(want) {
			out = append(out, c)
		}
	}
	return out
}

func (c Call) has(want []string) bool {
	resource := c.Resource
	if c.Subresource != "" {
		resource += "/" + c.Subresource
	}
	return !slices.ContainsFunc(want, func(w string) bool {
		return w != c.Verb && w != resource && w != c.Namespace && w != c.Name && w != c.Namespace+"/"+c.Name
	})
}

// Forget deletes the recorded requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// RoundTrip implements http.RoundTripper: it serves requests of a client without a network.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	r, w := io.Pipe()
	rw := &pipe{header: http.Header{}, body: w, begun: make(chan struct{})}
	broken := make(chan struct{})
	unread := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) }) // unblocks writes after the client has canceled the request
	go func() {
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				if p != http.ErrAbortHandler {
					panic(p)
				}
				close(broken)
				_ = w.CloseWithError(ErrRefused)
				return
			}
			rw.WriteHeader(http.StatusOK)
			unread() // the remaining data is read
			_ = w.Close()
		}()
		s.ServeHTTP(rw, req.WithContext(ctx))
		if ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
	}()
	select {
	case <-req.Context().Done():
		cancel()
		return nil, context.Cause(req.Context())
	case <-broken:
		return nil, ErrRefused
	case <-rw.begun:
	}
	return &http.Response{
		Status: http.StatusText(rw.code), StatusCode: rw.code, Header: rw.header, Request: req,
		Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: -1,
		Body: &pipeBody{r, cancel},
	}, nil
}

// A pipe is the ResponseWriter of RoundTrip.
type pipe struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	code   int
	begun  chan struct{} // closed when code and header are set
}

func (p *pipe) Header() http.Header { return p.header }

func (p *pipe) WriteHeader(code int) {
	p.once.Do(func() {
		p.code = code
		p.header = p.header.Clone()
		close(p.begun)
	})
}

func (p *pipe) Write(data []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.body.Write(data)
}

func (p *pipe) Flush() { p.WriteHeader(http.StatusOK) }

// A pipeBody notifies the handler when the client closes it.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
