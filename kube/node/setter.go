package node

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Setter fills in one part of a node's object. Setters are called one after the
// other, on one goroutine, and see what the earlier ones set.
type Setter struct {
	// Name says what it sets, for logs: "addresses".
	Name string

	// Set changes d.Node. An error is logged, and the next setter called
	// (ns-8): what it had set by then stays.
	Set func(ctx context.Context, d *Draft) error
}

// A Draft is a node's object while setters work on it.
type Draft struct {
	// Node is a copy of the object as it is in the API server, or as it is
	// going to be made.
	Node *v1.Node

	// Before is the object of the pass before this one; nil in the first.
	Before *v1.Node

	// Now is the time of all of the pass: of heartbeats and transitions.
	Now metav1.Time

	// Age is how long the agent has been at it.
	Age time.Duration

	events []runtime.Event
}

// Event tells of something that has happened to the node. It is recorded once
// the object that says so has reached the API server, so that it is told once.
func (d *Draft) Event(eventType, reason, format string, args ...any) {
	d.events = append(d.events, runtime.Event{
		// The kubelet's events have the node's name for its UID: kubectl
		// describe node looks for that.
		Object: v1.ObjectReference{Kind: "Node", Name: d.Node.Name, UID: types.UID(d.Node.Name)},
		Type:   eventType, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

// apply runs the setters over a copy of object.
func apply(ctx context.Context, setters []Setter, object, before *v1.Node, started time.Time) (*Draft, []error) {
	now := time.Now()
	d := &Draft{Node: object.DeepCopy(), Before: before, Now: metav1.NewTime(now), Age: now.Sub(started)}
	var errs []error
	for _, s := range setters {
		if err := s.Set(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("node: set %s: %w", s.Name, err))
		}
	}
	return d, errs
}
