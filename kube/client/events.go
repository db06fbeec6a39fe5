package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/kubeparts/kubeparts/runtime"
)

// An EventsConfig says in whose name events are written.
type EventsConfig struct {
	// Client writes them: Connection.Events. Required.
	Client kubernetes.Interface

	// NodeName is the host that events name as theirs. Required.
	NodeName string

	// Component is who they come from. "" means "kubelet": kubectl and
	// dashboards look for it.
	Component string

	// Queue is how many events may wait to be written. 0 means 1000. More that
	// come while the server is slow or away are dropped.
	Queue int

	// Logger gets what goes wrong. Nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks EventsHooks
}

// EventsHooks observe an [Events]. They must be quick. Any may be nil.
type EventsHooks struct {
	// Dropped: an event will not be written, since the queue is full, or too
	// many were about its object (why is nil), or the server refused it.
	Dropped func(e runtime.Event, why error)

	// Wrote: an event was created, or counted up.
	Wrote func(runtime.Event)
}

// Events writes what people want to read about pods and the node. Events that
// repeat are counted rather than written again, many of one reason become one,
// and an object that many are about has 25, then one more in 5 minutes, as with
// the kubelet.
type Events struct {
	cfg        EventsConfig
	ran        atomic.Bool // Run was called
	queue      chan queued
	correlator *record.EventCorrelator // Run's goroutine asks it
	named      int64                   // after which nanosecond the last event was named
	left       *leftEvent              // that Run, or Flush, was at when it ended
}

// A leftEvent is one that was correlated with those before, but not written.
type leftEvent struct {
	event  runtime.Event
	result *record.EventCorrelateResult
}

type queued struct {
	event runtime.Event
	at    time.Time
}

// What is tried for an event while nobody answers.
const (
	eventTries   = 12
	eventRetry   = 10 * time.Second
	eventTimeout = 30 * time.Second
)

// maxEventMessage is how much of a message is written: what the newer event API
// takes, and more than anybody reads.
const maxEventMessage = 1024

// NewEvents checks cfg and returns an Events. It starts nothing: what is
// recorded before Run waits for it.
func NewEvents(cfg EventsConfig) (*Events, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("client: EventsConfig.Client is nil")
	case cfg.NodeName == "":
		return nil, errors.New("client: EventsConfig.NodeName is empty")
	case cfg.Queue < 0:
		return nil, errors.New("client: EventsConfig.Queue is negative")
	}
	cfg.Component = or(cfg.Component, "kubelet")
	cfg.Logger = quiet(cfg.Logger)
	return &Events{
		cfg:        cfg,
		queue:      make(chan queued, or(cfg.Queue, 1000)),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}),
	}, nil
}

// Record takes an event; it never waits. It may be called from anywhere.
func (e *Events) Record(event runtime.Event) {
	select {
	case e.queue <- queued{event, time.Now()}:
	default:
		e.dropped(event, errors.New("client: too many events wait to be written"))
	}
}

// Run writes the recorded events until ctx is done, and returns nil. Events that are
// not written by then are left for Flush. A second call returns an error.
func (e *Events) Run(ctx context.Context) error {
	if e.ran.Swap(true) {
		return errors.New("client: Events.Run was called before")
	}
	for ctx.Err() == nil { // one more event would take the place of the one that is left
		select {
		case <-ctx.Done():
		case q := <-e.queue:
			e.write(ctx, q)
		}
	}
	return nil
}

// Flush writes what is waiting, and returns when there is nothing more or ctx
// ends. It is for the end of an agent, after Run.
func (e *Events) Flush(ctx context.Context) error {
	for ctx.Err() == nil {
		if left := e.left; left != nil {
			e.left = nil
			e.deliver(ctx, *left)
			continue
		}
		select {
		case q := <-e.queue:
			e.write(ctx, q)
		default:
			return nil
		}
	}
	waiting := len(e.queue)
	if e.left != nil {
		waiting++
	}
	if waiting == 0 {
		return nil
	}
	return fmt.Errorf("client: flush events: %d are not written: %w", waiting, context.Cause(ctx))
}

// write writes one event. While the server cannot be reached, those behind it
// wait.
func (e *Events) write(ctx context.Context, q queued) {
	result, err := e.correlator.EventCorrelate(e.object(q))
	if err != nil || result.Skip {
		e.dropped(q.event, err)
		return
	}
	e.deliver(ctx, leftEvent{q.event, result})
}

// deliver writes an event, or leaves it if ctx ends before.
func (e *Events) deliver(ctx context.Context, q leftEvent) {
	for try := 1; ; try++ {
		call, cancel := context.WithTimeout(ctx, eventTimeout)
		err := e.send(call, q.result)
		cancel()
		if err == nil {
			if e.cfg.Hooks.Wrote != nil {
				e.cfg.Hooks.Wrote(q.event)
			}
			return
		}
		if ctx.Err() != nil {
			e.left = &q
			return
		}
		// What the server has an answer to is not asked twice.
		if status, ok := errors.AsType[*apierrors.StatusError](err); ok && !apierrors.IsTooManyRequests(status) && status.ErrStatus.Code < 500 || try == eventTries {
			e.dropped(q.event, fmt.Errorf("client: write event: %w", err))
			return
		}
		e.cfg.Logger.Debug("event", "reason", q.event.Reason, "err", err, "retryIn", eventRetry)
		select {
		case <-ctx.Done():
			e.left = &q
			return
		case <-time.After(eventRetry):
		}
	}
}

// send creates the event, or counts up the one that is there.
func (e *Events) send(ctx context.Context, result *record.EventCorrelateResult) error {
	events := e.cfg.Client.CoreV1().Events(result.Event.Namespace)
	if len(result.Patch) > 0 && result.Event.Count > 1 {
		there, err := events.Patch(ctx, result.Event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
		if err == nil {
			e.correlator.UpdateState(there)
			return nil
		}
		if !apierrors.IsNotFound(err) { // they live for an hour
			return err
		}
	}
	result.Event.ResourceVersion = ""
	there, err := events.Create(ctx, result.Event, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the answer to the first try was lost
		return nil
	}
	if err == nil {
		e.correlator.UpdateState(there)
	}
	return err
}

// object makes the event of the API.
func (e *Events) object(q queued) *v1.Event {
	ref := q.event.Object
	at := metav1.NewTime(q.at)
	e.named = max(q.at.UnixNano(), e.named+1)                   // two of one moment have two names
	namespace := cmp.Or(ref.Namespace, metav1.NamespaceDefault) // the node's
	return &v1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", ref.Name, e.named), Namespace: namespace},
		InvolvedObject:      ref,
		Type:                q.event.Type,
		Reason:              q.event.Reason,
		Message:             cut(q.event.Message, maxEventMessage),
		Count:               1,
		FirstTimestamp:      at,
		LastTimestamp:       at,
		Source:              v1.EventSource{Component: e.cfg.Component, Host: e.cfg.NodeName},
		ReportingController: e.cfg.Component,
		ReportingInstance:   e.cfg.NodeName,
	}
}

func (e *Events) dropped(event runtime.Event, why error) {
	if why != nil {
		e.cfg.Logger.Warn("event dropped", "object", event.Object.Namespace+"/"+event.Object.Name, "reason", event.Reason, "err", why)
	}
	if e.cfg.Hooks.Dropped != nil {
		e.cfg.Hooks.Dropped(event, why)
	}
}
