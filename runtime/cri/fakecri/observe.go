package fakecri

import (
	"fmt"
	"time"
)

// A State is the state of a sandbox or a container.
type State int

// The states. Absent is the state before creation and after removal.
const (
	Absent   State = iota
	Ready          // a sandbox
	NotReady       // a sandbox
	Created        // this and the following: a container
	Running
	Exited
)

func (s State) String() string {
	switch s {
	case Absent:
		return "absent"
	case Ready:
		return "ready"
	case NotReady:
		return "not ready"
	case Created:
		return "created"
	case Running:
		return "running"
	case Exited:
		return "exited"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// A Change is a transition of a sandbox or a container from one state to another.
type Change struct {
	At  time.Time
	Pod string // UID

	// Container is its name, empty for a sandbox. ID and Attempt belong to the container,
	// or else of the sandbox.
	Container string
	ID        string
	Attempt   uint32

	// Sandbox is the ID of the container's sandbox, and Image its image, with the name in the
	// pod if the client passed it.
	Sandbox, Image string

	From, To State

	// ExitCode and Reason (for example OOMKilled) are set if To is Exited.
	ExitCode int32
	Reason   string
}

// changedLocked queues a change; unlock passes it to Observe.
func (r *Runtime) changedLocked(c Change) {
	if r.cfg.Observe != nil {
		c.At = time.Now()
		r.changes = append(r.changes, c)
	}
}

// unlock releases mu and calls Observe for the queued changes. It must be used after every
// change.
func (r *Runtime) unlock() {
	if r.telling || len(r.changes) == 0 {
		r.mu.Unlock()
		return
	}
	r.telling = true
	for len(r.changes) > 0 {
		changes := r.changes
		r.changes = nil
		r.mu.Unlock()
		for _, c := range changes {
			r.cfg.Observe(c)
		}
		r.mu.Lock()
	}
	r.telling = false
	r.mu.Unlock()
}
