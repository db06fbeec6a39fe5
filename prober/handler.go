package prober

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Handler carries out one run of a probe: it runs the command, or makes the
// request, and says what came of it.
//
// A Manager calls it from many goroutines, at most once at a time for a probe.
// It keeps to t.Timeout itself, which for most is a failure, and returns soon
// after ctx has ended: when nobody cares for the outcome any more, or two
// seconds after the timeout. An error then is a failure, too.
//
// An error means that the probe could not be carried out, which says nothing
// about the container: it is tried again at once, twice at most, and then
// passed over (prober-21, prober-29). That a server refuses the connection is a
// failure, and not an error.
type Handler interface {
	Probe(ctx context.Context, t Target) (Outcome, error)
}

// A Target is what one run of a probe is about.
type Target struct {
	Pod       *v1.Pod       // may not be changed
	Container *v1.Container // of Pod; its ports and env give names a meaning
	Kind      Kind
	Probe     *v1.Probe // what to do; its times and thresholds don't concern a Handler

	// ContainerID as the runtime knows it: "<runtime name>://<id>".
	ContainerID string

	// PodIP is the primary address of the pod, "" if it has none yet.
	PodIP string

	// Timeout of this run in all. Above zero.
	Timeout time.Duration
}

// An Outcome is what one run of a probe has come to.
type Outcome struct {
	// Result is ProbeSuccess or ProbeFailure.
	Result runtime.ProbeResult

	// Warning: it is a success that somebody should have a look at
	// (prober-32).
	Warning bool

	// Output says why, for the event: "HTTP probe failed with statuscode: 503".
	Output string

	// Detail is what else helps to understand a failure, such as the start of
	// the body of an HTTP answer. The event shows its first KiB after Output.
	Detail string
}

// Handlers carry out the probes of the API, each those of its type. It is a
// Handler itself, which passes a probe on to the one for it.
//
// A nil one means that nobody can carry out that type: such a probe is an
// error, which an event tells and which has no effect (prober-33).
type Handlers struct {
	Exec      Handler
	HTTPGet   Handler
	TCPSocket Handler
	GRPC      Handler
}

const (
	// tries is how often a run that ends in an error is made (prober-29).
	tries = 3

	// grace is what a handler has to notice a timeout before its context ends.
	grace = 2 * time.Second
)

// Probe runs the probe of t once, or up to three times where there is an error:
// all that a Manager does to make a run, for those who have their own idea of
// when. A Target without a Probe is a success (prober-28), one without a Timeout
// has that of the Probe. The panic of a handler is an error (prober-10).
func (h Handlers) Probe(ctx context.Context, t Target) (Outcome, error) {
	if t.Probe == nil {
		return Outcome{Result: runtime.ProbeSuccess}, nil
	}
	if t.Timeout <= 0 {
		t.Timeout = TimingOf(t.Probe).Timeout
	}
	handler, err := h.of(t)
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

// of returns who carries out the probe of t.
func (h Handlers) of(t Target) (Handler, error) {
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
	who := name(t.Pod) + ":" + t.Container.Name
	switch {
	case len(set) == 0:
		return nil, fmt.Errorf("missing probe handler for %s", who)
	case len(set) > 1:
		return nil, fmt.Errorf("more than one probe handler for %s: %v", who, set)
	case handler == nil:
		return nil, fmt.Errorf("missing probe handler for %s: this node runs no %s probes", who, set[0])
	}
	return handler, nil
}

// call is one try.
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
		err = errors.New("the probe handler returned no result")
	}
	return outcome, err
}

// name returns the name of pod as the kubelet logs it: "web_default(uid)".
func name(pod *v1.Pod) string {
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}
