package pleg

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// An EventType is the type of a change. The values are the kubelet's.
type EventType string

// The types of events.
const (
	// ContainerStarted: a container is running, or a sandbox is ready.
	ContainerStarted EventType = "ContainerStarted"

	// ContainerDied: a container exited, or a sandbox is not ready any more. It
	// precedes the ContainerRemoved of each container.
	ContainerDied EventType = "ContainerDied"

	// ContainerRemoved: the runtime does not list the container any more.
	ContainerRemoved EventType = "ContainerRemoved"

	// ContainerChanged: a container was created and is not running yet, or its state
	// is unknown.
	ContainerChanged EventType = "ContainerChanged"

	// PodSync: the pod was inspected again, as requested or after failed
	// inspections, and no container changed.
	PodSync EventType = "PodSync"
)

// An Event is a change of one pod. [Generator.Get] returns the current status.
type Event struct {
	UID  types.UID // of the pod
	Type EventType

	// ContainerID is a runtime.Container's or a runtime.Sandbox's ID: a
	// sandbox counts as a container. "" for PodSync.
	ContainerID string
}

// String returns the event in one line: "<uid> ContainerDied <id>".
func (e Event) String() string {
	if e.ContainerID == "" {
		return fmt.Sprintf("%s %s", e.UID, e.Type)
	}
	return fmt.Sprintf("%s %s %s", e.UID, e.Type, e.ContainerID)
}

// Matters reports whether the pod has to be synced because of the event. It returns false for
// ContainerRemoved, which an event for the exit of the container precedes.
func (e Event) Matters() bool { return e.Type != ContainerRemoved }
