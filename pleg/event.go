package pleg

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// An EventType says what happened. The values are the kubelet's (pleg-3).
type EventType string

// The types of events.
const (
	// ContainerStarted: a container runs, or a sandbox is ready (pleg-4).
	ContainerStarted EventType = "ContainerStarted"

	// ContainerDied: a container exited, or a sandbox is not ready any more
	// (pleg-5). Before its removal each container is told to have died
	// (pleg-7).
	ContainerDied EventType = "ContainerDied"

	// ContainerRemoved: the runtime holds nothing of it any more.
	ContainerRemoved EventType = "ContainerRemoved"

	// ContainerChanged: a container was created and does not run yet, or the
	// runtime lost track of it (pleg-6).
	ContainerChanged EventType = "ContainerChanged"

	// PodSync: the pod was inspected again, as requested or after
	// inspections that failed, and no container changed (pleg-20).
	PodSync EventType = "PodSync"
)

// An Event is a change of one pod. It is a reason to look, not a state: what
// the pod is like now, [Generator.Get] knows.
type Event struct {
	UID  types.UID // of the pod
	Type EventType

	// ContainerID is a runtime.Container's or a runtime.Sandbox's ID, since a
	// sandbox counts as a container (pleg-2); "" for PodSync.
	ContainerID string
}

// String returns the event in one line: "<uid> ContainerDied <id>".
func (e Event) String() string {
	if e.ContainerID == "" {
		return fmt.Sprintf("%s %s", e.UID, e.Type)
	}
	return fmt.Sprintf("%s %s %s", e.UID, e.Type, e.ContainerID)
}

// Matters reports whether the pod has to be synced because of the event. The
// removal of a container or sandbox that has exited changes nothing in what the
// pod needs; its exit is an event of its own before.
func (e Event) Matters() bool { return e.Type != ContainerRemoved }
