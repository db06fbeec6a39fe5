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

// A Server is an API server in memory. The zero value is ready. Its fields are
// set before the first call; all methods may be called at any time.
type Server struct {
	// Fault is asked before each call what is wrong with it. Nil, or the zero
	// Fault: nothing. It may block, which is latency too.
	Fault func(Call) Fault

	// NoWatchList makes it one that knows no watch-lists: they are refused as
	// invalid.
	NoWatchList bool

	// MaxBody is the size of the largest request, in bytes: 0 means 3 MiB.
	// Larger ones are 413.
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
	Selector    string // of fields
	Labels      string // the selector of labels
	UserAgent   string
	Protobuf    bool   // the answer is asked for in protobuf
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

// A Fault is what is wrong with a call.
type Fault struct {
	// Latency comes before everything else.
	Latency time.Duration

	// Code answers with that status, Reason and Message, where there are any,
	// and nothing is done. RetryAfter goes into the header, in seconds.
	Code       int
	Reason     metav1.StatusReason
	Message    string
	RetryAfter int

	// Refuse makes the connection fail. Hang never answers, until the caller
	// gives up. LoseAnswer does what was asked for, and then fails the
	// connection.
	Refuse, Hang, LoseAnswer bool
}

// ErrRefused is what a connection fails with.
var ErrRefused = errors.New("connection refused")

// RESTConfig returns how to reach the server without a network. Its calls take
// no time but what Fault says, also in a synctest bubble.
func (s *Server) RESTConfig() *rest.Config {
	return &rest.Config{Host: "http://apitest", Transport: s}
}

// ServeHTTP implements http.Handler, for those who want a network:
// httptest.NewServer(s).
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

// Calls returns the calls so far, in the order they came, that match all of
// want: words of their String such as "patch", "pods/status".
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

// Forget forgets the calls so far.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// RoundTrip implements http.RoundTripper: the calls of a client come here
// without a network between.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	r, w := io.Pipe()
	rw := &pipe{header: http.Header{}, body: w, begun: make(chan struct{})}
	broken := make(chan struct{})
	unread := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) }) // nobody reads: nobody is to wait for that
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
			unread() // what was written is still read
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

// A pipeBody lets the handler know that nobody reads any more.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
