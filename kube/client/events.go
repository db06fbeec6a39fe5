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

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// An EventsConfig configures an Events.
type EventsConfig struct {
	// Client writes the events: Connection.Events. Required.
	Client kubernetes.Interface

	// NodeName is the host of the events. Required.
	NodeName string

	// Component is the reporting component. Empty: "kubelet", which kubectl and dashboards
	// expect.
	Component string

	// Queue is the maximum number of events that are not written yet. Zero: 1000. Further
	// events are dropped.
	Queue int

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called for each event.
	Hooks EventsHooks
}

// EventsHooks are called by an [Events]. Each may be nil. They must not block.
type EventsHooks struct {
	// Dropped is called for an event that will not be written: because the queue is full,
	// the server rejects it, or, with a nil err, current were too many events about its
	// object.
	Dropped func(e runtime.Event, err error)

	// Wrote is called after an event was created, or its count was increased.
	Wrote func(runtime.Event)
}

// Join returns EventsHooks that call the functions of h and then those of others, in order.
func (h EventsHooks) Join(others ...EventsHooks) EventsHooks {
	for _, o := range others {
		compose.Add2(&h.Dropped, o.Dropped)
		compose.Add(&h.Wrote, o.Wrote)
	}
	return h
}

// Events writes events to an API server. Repeated events increase a count, many similar
// ones are aggregated, and each object may have a burst of 25 events, then one per 5
// minutes, as with the kubelet.
type Events struct {
	cfg        EventsConfig
	ran        atomic.Bool // Run was called
	queue      *eventQueue
	correlator *record.EventCorrelator // used by Run and Flush only
	named      int64                   // nanosecond in the name of the last event
	pending    *pendingEvent           // being written when Run or Flush returned
}

// A pendingEvent was correlated, but not written.
type pendingEvent struct {
	event  runtime.Event
	result *record.EventCorrelateResult
	tried  bool // the server may have it
}

type queued struct {
	event runtime.Event
	at    time.Time
}

// Attempts to write an event.
const (
	eventTries   = 12
	eventRetry   = 10 * time.Second
	eventTimeout = 30 * time.Second
)

// maxEventMessage is the maximum length of a message in bytes, as in events.k8s.io/v1.
const maxEventMessage = 1024

// NewEvents returns an Events, or an error if cfg is invalid. It starts nothing: events
// that are recorded before Run are queued.
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
		queue:      newEventQueue(or(cfg.Queue, 1000)),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}),
	}, nil
}

// Record queues an event. It does not block and is safe for concurrent use.
func (e *Events) Record(event runtime.Event) {
	if !e.queue.push(queued{event, time.Now()}) {
		e.dropped(event, errors.New("client: event queue is full"))
	}
}

// Run writes the recorded events until ctx is done, and returns nil. Events that are not
// written by then are left to Flush. It returns an error if it was called before.
func (e *Events) Run(ctx context.Context) error {
	if e.ran.Swap(true) {
		return errors.New("client: Events.Run was called before")
	}
	for ctx.Err() == nil { // another event would replace the pending one
		if q, ok := e.queue.pop(); ok {
			e.write(ctx, q)
			continue
		}
		select {
		case <-ctx.Done():
		case <-e.queue.ready:
		}
	}
	return nil
}

// Flush writes the queued events. It returns when the queue is empty, or an error if ctx is
// done first. It must be called after Run has returned.
func (e *Events) Flush(ctx context.Context) error {
	for ctx.Err() == nil {
		if pending := e.pending; pending != nil {
			e.pending = nil
			e.deliver(ctx, *pending)
			continue
		}
		q, ok := e.queue.pop()
		if !ok {
			return nil
		}
		e.write(ctx, q)
	}
	waiting := e.queue.len()
	if e.pending != nil {
		waiting++
	}
	if waiting == 0 {
		return nil
	}
	return fmt.Errorf("client: flush events: %d not written: %w", waiting, context.Cause(ctx))
}

// write writes one event. While the server is unavailable it blocks the queue.
func (e *Events) write(ctx context.Context, q queued) {
	result, err := e.correlator.EventCorrelate(e.object(q))
	if err != nil || result.Skip {
		e.dropped(q.event, err)
		return
	}
	e.deliver(ctx, pendingEvent{event: q.event, result: result})
}

// deliver writes an event, or stores it as pending if ctx is done.
func (e *Events) deliver(ctx context.Context, q pendingEvent) {
	for try := 1; ; try++ {
		call, cancel := context.WithTimeout(ctx, eventTimeout)
		err := e.send(call, q.result, q.tried)
		cancel()
		q.tried = true
		if err == nil {
			if e.cfg.Hooks.Wrote != nil {
				e.cfg.Hooks.Wrote(q.event)
			}
			return
		}
		if ctx.Err() != nil {
			e.pending = &q
			return
		}
		// Rejections by the server are final.
		if status, ok := errors.AsType[*apierrors.StatusError](err); ok && !apierrors.IsTooManyRequests(status) && status.ErrStatus.Code < 500 || try == eventTries {
			e.dropped(q.event, fmt.Errorf("client: write event: %w", err))
			return
		}
		e.cfg.Logger.Debug("Failed to write event; retrying", "reason", q.event.Reason, "err", err, "retryIn", eventRetry)
		select {
		case <-ctx.Done():
			e.pending = &q
			return
		case <-time.After(eventRetry):
		}
	}
}

// maxRenames is the maximum number of other names that are tried for an event whose name is
// that of an event of another component.
const maxRenames = 10

// send creates the event, or increases the count of an existing one. If it was tried before,
// an event with its name is the result of that.
func (e *Events) send(ctx context.Context, result *record.EventCorrelateResult, tried bool) error {
	events := e.cfg.Client.CoreV1().Events(result.Event.Namespace)
	if len(result.Patch) > 0 && result.Event.Count > 1 {
		current, err := events.Patch(ctx, result.Event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
		if err == nil {
			e.correlator.UpdateState(current)
			return nil
		}
		if !apierrors.IsNotFound(err) { // events expire after an hour
			return err
		}
	}
	result.Event.ResourceVersion = ""
	current, err := events.Create(ctx, result.Event, metav1.CreateOptions{})
	for i := 0; apierrors.IsAlreadyExists(err) && !tried && i < maxRenames; i++ { // of the same instant, in a synctest bubble
		e.named++
		result.Event.Name = eventName(result.Event.InvolvedObject, e.named)
		current, err = events.Create(ctx, result.Event, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) { // the response to an earlier attempt was lost
		return nil
	}
	if err == nil {
		e.correlator.UpdateState(current)
	}
	return err
}

// object returns the API object of an event.
func (e *Events) object(q queued) *v1.Event {
	ref := q.event.Object
	at := metav1.NewTime(q.at)
	e.named = max(q.at.UnixNano(), e.named+1)                   // names must be unique
	namespace := cmp.Or(ref.Namespace, metav1.NamespaceDefault) // of events about the node
	return &v1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: eventName(ref, e.named), Namespace: namespace},
		InvolvedObject:      ref,
		Type:                q.event.Type,
		Reason:              q.event.Reason,
		Message:             truncate(q.event.Message, maxEventMessage),
		Count:               1,
		FirstTimestamp:      at,
		LastTimestamp:       at,
		Source:              v1.EventSource{Component: e.cfg.Component, Host: e.cfg.NodeName},
		ReportingController: e.cfg.Component,
		ReportingInstance:   e.cfg.NodeName,
	}
}

// eventName returns the name of an event that was recorded at a nanosecond.
func eventName(of v1.ObjectReference, nanosecond int64) string {
	return fmt.Sprintf("%s.%x", of.Name, nanosecond)
}

func (e *Events) dropped(event runtime.Event, err error) {
	if err != nil {
		level := slog.LevelWarn
		if isNamespaceDeleted(err) {
			level = slog.LevelDebug // every pod of a deleted namespace has such events
		}
		e.cfg.Logger.Log(context.Background(), level, "Dropped event", "object", event.Object.Namespace+"/"+event.Object.Name, "reason", event.Reason, "err", err)
	}
	if e.cfg.Hooks.Dropped != nil {
		e.cfg.Hooks.Dropped(event, err)
	}
}

// isNamespaceDeleted reports whether a write failed because the namespace of the object is being
// terminated or has been deleted.
func isNamespaceDeleted(err error) bool {
	if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		return true
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(status) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}
