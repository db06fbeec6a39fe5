package cluster

import (
	"fmt"
	"time"
)

// An Event is a change of a pod or node.
type Event struct {
	At      time.Duration // since the start of the simulation
	Kind    EventKind
	Pod     string // its name; empty: the event concerns the node only
	Node    string // its name; empty: the pod has no node
	Message string // details; may be empty
}

// String returns the event as a line of text.
func (e Event) String() string {
	return fmt.Sprintf("%v %s pod=%s node=%s %s", e.At, e.Kind, e.Pod, e.Node, e.Message)
}

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	PodCreated       EventKind = "created"
	PodScheduled     EventKind = "scheduled"
	ContainerStarted EventKind = "started"   // Message: the restart count
	ContainerExited  EventKind = "exited"    // Message: the exit code
	OOMKilled        EventKind = "oomkilled" // Message: "limit" or "node"
	PodEvicted       EventKind = "evicted"   // its termination begins; Message: that of the eviction
	PodTerminated    EventKind = "terminated"
	ImagePulled      EventKind = "pulled"     // Message: the image
	ImagePullFailed  EventKind = "nopull"     // Message: the image
	ImageRemoved     EventKind = "unpulled"   // Message: the image
	NodeConditions   EventKind = "conditions" // Message: the pressure conditions of the node
)
