package prober

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Handler carries out one attempt of a probe: it runs the command or sends the request, and
// returns the outcome.
//
// A Manager calls it from many goroutines, but not concurrently for the same probe. Probe must
// apply t.Timeout itself, usually as a failure, and must return soon after ctx is done. That
// happens when the outcome is no longer needed, or five seconds after the timeout; an error
// after those is a failure.
//
// An error means that the probe could not be carried out, which does not depend on the
// container. It is retried immediately up to twice, and then ignored. A refused connection
// must be a failure, not an error.
type Handler interface {
	Probe(ctx context.Context, t Target) (Outcome, error)
}

// A Target describes one attempt of a probe.
type Target struct {
	Pod       *v1.Pod       // must not be modified
	Container *v1.Container // of Pod; its ports and env resolve names
	Kind      Kind
	Probe     *v1.Probe // its periods and thresholds do not concern a Handler

	// ContainerID in the form "<runtime name>://<id>".
	ContainerID string

	// PodIP is the primary IP of the pod. Empty if it has none yet.
	PodIP string

	// Timeout of the attempt. Positive.
	Timeout time.Duration
}

// An Outcome is the outcome of one attempt of a probe.
type Outcome struct {
	// Result is ProbeSuccess or ProbeFailure.
	Result runtime.ProbeResult

	// Warning marks a success that is reported by an event.
	Warning bool

	// Output is the reason, for the event: "HTTP probe failed with statuscode: 503".
	Output string

	// Detail has more about a failure, such as the beginning of an HTTP response body. The
	// event contains its first KiB after Output.
	Detail string
}

// Handlers carry out the probes of the API by type. It is a Handler that selects the one for a
// probe.
//
// A probe whose handler is nil is an error, which is reported by an event and has no effect.
type Handlers struct {
	Exec      Handler
	HTTPGet   Handler
	TCPSocket Handler
	GRPC      Handler
}

const (
	// tries is the maximum number of tries of an attempt that returns an error.
	tries = 3

	// grace is the time between the timeout of a handler and the end of its context. Exec needs
	// twice the slack.
	grace = 2*slack + time.Second
)

// Probe makes one attempt, with up to three tries if the handler returns an error, as a Manager
// does. It is for callers with a schedule of their own. A Target without a Probe is a success; one
// without a Timeout has that of the Probe. A panic of the handler is an error.
func (h Handlers) Probe(ctx context.Context, t Target) (Outcome, error) {
	if t.Probe == nil {
		return Outcome{Result: runtime.ProbeSuccess}, nil
	}
	if t.Timeout <= 0 {
		t.Timeout = timingOf(t.Probe).Timeout
	}
	handler, err := h.handlerFor(t)
	if err != nil {
		return Outcome{}, err
	}
	var outcome Outcome
	for range tries {
		if outcome, err = call(ctx, handler, t); err == nil || ctx.Err() != nil {
			break
		}
	}
	return outcome, err
}

// handlerFor returns the handler for the probe of t.
func (h Handlers) handlerFor(t Target) (Handler, error) {
	var set []string
	var handler Handler
	for _, each := range []struct {
		name    string
		set     bool
		handler Handler
	}{
		{"exec", t.Probe.Exec != nil, h.Exec},
		{"httpGet", t.Probe.HTTPGet != nil, h.HTTPGet},
		{"tcpSocket", t.Probe.TCPSocket != nil, h.TCPSocket},
		{"grpc", t.Probe.GRPC != nil, h.GRPC},
	} {
		if each.set {
			set, handler = append(set, each.name), each.handler
		}
	}
	target := name(t.Pod) + ":" + t.Container.Name
	switch {
	case len(set) == 0:
		return nil, fmt.Errorf("missing probe handler for %s", target)
	case len(set) > 1:
		return nil, fmt.Errorf("more than one probe handler for %s: %v", target, set)
	case handler == nil:
		return nil, fmt.Errorf("missing probe handler for %s: no handler for %s", target, set[0])
	}
	return handler, nil
}

// call makes one try.
func call(ctx context.Context, h Handler, t Target) (outcome Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			outcome, err = Outcome{}, fmt.Errorf("probe handler panicked: %v", p)
		}
	}()
	tryCtx, cancel := context.WithTimeout(ctx, t.Timeout+grace)
	defer cancel()
	outcome, err = h.Probe(tryCtx, t)
	if err != nil && tryCtx.Err() != nil && ctx.Err() == nil {
		return Outcome{Result: runtime.ProbeFailure, Output: fmt.Sprintf("timed out after %v: %v", t.Timeout, err)}, nil
	}
	if err == nil && outcome.Result == runtime.ProbeUnknown {
		err = errors.New("probe handler returned no result")
	}
	return outcome, err
}

// name returns the name of pod as the kubelet logs it: "web_default(uid)".
func name(pod *v1.Pod) string {
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}
