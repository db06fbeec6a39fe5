package criproxy

import (
	"path"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

// A Call is a recorded call. Its fields can be encoded as JSON.
type Call struct {
	// Method is the name without the service: "CreateContainer".
	Method string

	// Began and Took are the time of the request and the duration of the call. Took is zero
	// if the call was in progress.
	Began time.Time
	Took  time.Duration

	// Request and Response are decoded messages, as [Decode] returns them. Response is nil
	// if the call failed or if it was not recorded.
	Request  any
	Response any `json:",omitempty"`

	// Code, such as "NotFound", and Error of a failed call, else empty.
	Code, Error string `json:",omitempty"`
}

// call is a Call before it is decoded.
type call struct {
	method            string
	began             time.Time
	took              time.Duration
	request, response frame
	err               error
}

// recorder is the bounded record.
type recorder struct {
	maxCalls, maxBytes int

	mu      sync.Mutex // guards the following
	calls   []*call
	bytes   int
	dropped int
}

// begin records a call before it is forwarded, so that records are in the order of the requests.
// The caller must call finish, and only that may change c.
func (r *recorder) begin(c *call) (finish func(err error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) >= r.maxCalls || r.bytes+len(c.request) > r.maxBytes {
		r.dropped++
		return func(error) {}
	}
	recorded := &call{method: c.method, began: c.began, request: c.request}
	r.calls = append(r.calls, recorded)
	r.bytes += len(c.request)
	return func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		recorded.took, recorded.err = time.Since(c.began), err
		if r.bytes+len(c.response) > r.maxBytes {
			r.dropped++
			return
		}
		recorded.response = c.response
		r.bytes += len(c.response)
	}
}

// Calls returns the recorded calls in the order of their requests. A message that cannot be
// decoded is returned as an error message in its place.
func (r *recorder) Calls() []Call {
	r.mu.Lock()
	recorded := slices.Clone(r.calls)
	copies := make([]call, 0, len(recorded))
	for _, c := range recorded {
		copies = append(copies, *c)
	}
	r.mu.Unlock()
	calls := make([]Call, 0, len(copies))
	for _, c := range copies {
		out := Call{Method: path.Base(c.method), Began: c.began, Took: c.took, Request: decodeAny(c.method, c.request, false)}
		if c.err != nil {
			out.Code, out.Error = status.Code(c.err).String(), status.Convert(c.err).Message()
		} else if c.response != nil {
			out.Response = decodeAny(c.method, c.response, true)
		}
		calls = append(calls, out)
	}
	return calls
}

// Dropped returns the number of calls and responses that were not recorded because the
// record is full.
func (r *recorder) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

func decodeAny(method string, data []byte, response bool) any {
	m, err := Decode(method, data, response)
	if err != nil {
		return err.Error()
	}
	return m
}
