package node

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Setter sets one part of a Node object. Setters are called in order, on one goroutine,
// and see the values set by earlier ones.
type Setter struct {
	// Name is the name of the part, for logs, such as "addresses".
	Name string

	// Set modifies d.Node. An error is logged, and the next setter is called (rule ns-8);
	// values set before the error remain.
	Set func(ctx context.Context, d *Draft) error
}

// A Draft is a Node object while setters modify it.
type Draft struct {
	// Node is a copy of the object of the API server, without its managed fields, or the
	// object to create.
	Node *v1.Node

	// Before is the object of the previous update; nil for the first.
	Before *v1.Node

	// Now is the time of heartbeats and transitions.
	Now metav1.Time

	// Age is the time since the start of Run.
	Age time.Duration

	events []runtime.Event
}

// Event adds an event about the node, which is recorded after the object was written.
func (d *Draft) Event(eventType, reason, format string, args ...any) {
	d.events = append(d.events, runtime.Event{
		Object: v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: d.Node.Name}, // record sets the UID
		Type:   eventType, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

// apply calls the setters with a copy of object.
func apply(ctx context.Context, setters []Setter, object, before *v1.Node, started time.Time) (*Draft, []error) {
	now := time.Now()
	copied := *object
	copied.ManagedFields = nil // most of the object, and of no use to setters
	d := &Draft{Node: copied.DeepCopy(), Before: before, Now: metav1.NewTime(now), Age: now.Sub(started)}
	var errs []error
	for _, s := range setters {
		if err := s.Set(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("node: set %s: %w", s.Name, err))
		}
	}
	return d, errs
}
