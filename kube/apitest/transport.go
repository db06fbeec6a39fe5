package apitest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
)

// RoundTrip implements http.RoundTripper: it serves requests of a client without a network.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Err() != nil {
		return nil, context.Cause(req.Context())
	}
	if s.immediate(req) {
		return s.roundTripNow(req)
	}
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

// immediate reports whether a request cannot block, so that it needs no goroutine: it is
// neither a watch nor a stream, its body is in memory, and no function of the test is called.
func (s *Server) immediate(req *http.Request) bool {
	if s.Fault != nil || s.Admit != nil || s.Admission != nil || req.Body != nil && req.GetBody == nil {
		return false
	}
	if strings.Contains(req.URL.RawQuery, "watch") {
		return false
	}
	for part := range strings.SplitSeq(req.URL.Path, "/") {
		if streams(part) {
			return false
		}
	}
	return true
}

// roundTripNow serves an immediate request on the goroutine of the client.
func (s *Server) roundTripNow(req *http.Request) (*http.Response, error) {
	rw := &recorder{header: http.Header{}}
	s.ServeHTTP(rw, req)
	if req.Body != nil {
		_ = req.Body.Close()
	}
	rw.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(rw.code), StatusCode: rw.code, Header: rw.header, Request: req,
		Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: int64(rw.body.Len()),
		Body: io.NopCloser(&rw.body),
	}, nil
}

// A recorder is the ResponseWriter of an immediate request.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

func (w *recorder) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}

// A pipe is the ResponseWriter of the other requests.
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
