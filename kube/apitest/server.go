package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/rest"
)

// A Server is an in-memory API server. The zero value serves the resources of Kubernetes.
// Its fields must be set before the first request; all methods are safe for concurrent use.
type Server struct {
	// Scheme has the Go types of custom resources, each with a list type. May be nil. A
	// resource is namespaced, has the usual plural of its kind, and the subresource status
	// if its type has the field Status; Resources describes those that differ.
	// CustomResourceDefinitions that are created add resources without Go types.
	Scheme *runtime.Scheme

	// Resources describes kinds of Scheme as discovery does: Group, Kind, Name (the
	// plural), Namespaced and ShortNames are used. An entry "widgets/status" is a
	// subresource; if there are any for a resource, they replace the usual one.
	Resources []metav1.APIResource

	// Fault is called before each request and returns its failure; the zero Fault means
	// none. It may block, which adds latency. May be nil.
	Fault func(Call) Fault

	// Admit is called before each write is validated, and for dry runs, with the present
	// object (nil: created) and the next one (nil: deleted), which it may modify. It is not
	// called for the writes of garbage collection. An error rejects the write: as it is if
	// it is an API status, else as forbidden. It may be called twice for one write that
	// conflicts with another. May be nil.
	Admit func(c Call, old, next runtime.Object) error

	// Admission decides on each write, after Admit. Package kube/controllers/apiserver has
	// that of kube-apiserver. May be nil.
	Admission Admission

	// Extension replaces parts of the server by those of kube-apiserver. Package
	// kube/controllers/apiserver sets it. May be nil.
	Extension Extension

	// NoRecord does not record requests, for servers that run for a long time: Calls
	// returns none.
	NoRecord bool

	// NoCollection disables garbage collection and the deletion of the contents of
	// namespaces, which in a cluster is the work of controllers: objects whose owner is
	// deleted remain, and finalizers of a propagation policy and namespaces that terminate
	// wait for a controller.
	NoCollection bool

	// CollectionLatency is the time after which the work that NoCollection disables is done. In a
	// cluster, controllers do it asynchronously, so that a client observes a dependent for a
	// moment after the deletion of its owner. Zero: before the response to the request that
	// causes it.
	CollectionLatency time.Duration

	// RemovalLatency is the time between the deletionTimestamp of a pod without a grace period
	// and its removal. In a cluster it is that of a write to the store, and controllers often
	// observe the pod in between. Zero: none.
	RemovalLatency time.Duration

	// Connect serves the subresources log, exec, attach, portforward and proxy of existing
	// objects. If nil, they result in 501.
	Connect func(w http.ResponseWriter, r *http.Request, c Call)

	// Raw stores objects as they are sent: without defaults, without validation of
	// anything but the name, and without managed fields until an object is applied.
	Raw bool

	// RequireNamespaces rejects new objects in namespaces that do not exist, as Kubernetes
	// does; default, kube-system, kube-public and kube-node-lease need not be created. If
	// false, any namespace can be used, because most tests have no use for the objects.
	RequireNamespaces bool

	// NoWatchList rejects watch-lists as invalid, as servers without support do.
	NoWatchList bool

	// History is the number of changes of each resource that are kept for watches and for
	// lists of earlier versions. Zero: 10,000.
	History int

	// MaxBody is the maximum size of a request in bytes; larger ones result in 413. Zero: 3
	// MiB.
	MaxBody int64

	mu        sync.Mutex // guards the fields below
	table     store
	served    kinds // changed by serveLocked
	documents *documents
	problem   error // of the fields above
	calls     []Call
	watches   map[*watcher]*objects

	collections []collection // to be done; a goroutine runs if there are any

	aggregated map[string]http.Handler // by group version; replaced, not changed

	managersMu sync.Mutex // guards managers
	managers   map[managerKey]*managedfields.FieldManager
}

// kindsLocked returns the served resources.
func (s *Server) kindsLocked() kinds {
	if s.served == nil {
		all, err := newKinds(s.Scheme, s.Resources)
		if s.problem = err; err != nil {
			all, _ = newKinds(nil, nil)
		}
		s.serveLocked(all)
	}
	return s.served
}

// serveLocked sets the served resources.
func (s *Server) serveLocked(all kinds) {
	s.served, s.documents = all, new(documents)
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
	s.mu.Lock()
	all, docs, problem, aggregated := s.kindsLocked(), s.documents, s.problem, s.aggregatedLocked(r.URL.Path)
	s.mu.Unlock()
	switch {
	case problem != nil:
		writeError(w, apierrors.NewInternalError(problem))
		return
	case aggregated != nil:
		aggregated.ServeHTTP(w, r)
		return
	}
	if docs.discover(w, r, all) {
		return
	}
	req, err := s.parse(r)
	if err != nil {
		writeError(w, err)
		return
	}
	limit := s.MaxBody
	if limit == 0 {
		limit = 3 << 20
	}
	if r.Body != nil && !streams(req.Subresource) {
		var body bytes.Buffer
		body.Grow(int(min(max(r.ContentLength, 0), limit)) + bytes.MinRead)
		if _, err := body.ReadFrom(io.LimitReader(r.Body, limit+1)); err != nil {
			return
		}
		req.body = body.Bytes()
		if req.Verb == "patch" {
			req.Body = req.body
		}
	}
	req.At = time.Now()
	s.record(req.Call)
	fault, ok := s.fail(w, r, req)
	switch {
	case !ok:
	case int64(len(req.body)) > limit:
		writeError(w, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit)))
	case req.Verb == "watch":
		s.serveWatch(r.Context(), w, req)
	case streams(req.Subresource):
		s.connect(w, r, req)
	default:
		a, err := s.do(req)
		if fault.LoseAnswer {
			panic(http.ErrAbortHandler)
		}
		s.respond(w, req, a, err)
	}
}

// record records a request.
func (s *Server) record(c Call) {
	if s.NoRecord {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == cap(s.calls) { // there are many: append would copy them more often
		s.calls = slices.Grow(s.calls, len(s.calls)+16)
	}
	s.calls = append(s.calls, c)
}

// fail carries out the fault of a request, and reports whether the request is processed.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, req *request) (Fault, bool) {
	if s.Fault == nil {
		return Fault{}, true
	}
	fault := s.Fault(req.Call)
	if fault.Latency > 0 {
		timer := time.NewTimer(fault.Latency)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
			return fault, false
		case <-timer.C:
		}
	}
	switch {
	case fault.Refuse:
		panic(http.ErrAbortHandler)
	case fault.Hang:
		<-r.Context().Done()
		return fault, false
	case fault.Code != 0:
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(fault.RetryAfter))
		}
		writeError(w, fault.status())
		return fault, false
	}
	return fault, true
}

// connect passes a stream to the handler of the test.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, req *request) {
	switch _, err := s.get(req); {
	case err != nil:
		writeError(w, err)
	case s.Connect == nil:
		writeError(w, unconnected(req))
	default:
		s.Connect(w, r, req.Call)
	}
}

// respond writes an answer.
func (s *Server) respond(w http.ResponseWriter, req *request, a answer, err error) {
	for _, warning := range req.warnings {
		w.Header().Add("Warning", warning)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	data := a.data
	f := req.format
	switch {
	case data != nil:
	case a.item != nil:
		data, err = s.encoded(a.item, f)
	default:
		if o, ok := a.object.(object); ok && req.Subresource == "" {
			if a.object, err = s.presented(req.kind, o, f); err != nil {
				break
			}
		}
		data, err = encode(a.object, f.protobuf)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	write(w, f, a.code, data)
}

// Calls returns the recorded requests, in order, that match all of the words of their
// String in want, such as "patch", "pods/status".
func (s *Server) Calls(want ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(want) == 0 {
		return slices.Clone(s.calls)
	}
	var out []Call
	for _, c := range s.calls {
		if c.has(want) {
			out = append(out, c)
		}
	}
	return out
}

// Forget deletes the recorded requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}
