package fakecri

import (
	"fmt"
	"time"
)

// A State is that of a sandbox or a container.
type State int

// The states. Absent is before an object is made and after it is removed.
const (
	Absent   State = iota
	Ready          // a sandbox
	NotReady       // a sandbox
	Created        // a container, and so below
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

// A Change is that a sandbox or a container went from one state into another.
type Change struct {
	At  time.Time
	Pod string // UID

	// Container is its name, empty for a sandbox. ID and Attempt are the
	// container's, or else the sandbox's.
	Container string
	ID        string
	Attempt   uint32

	From, To State

	// ExitCode and Reason, of one whose To is Exited: "OOMKilled".
	ExitCode int32
	Reason   string
}

// changedLocked notes a change; unlock tells it.
func (r *Runtime) changedLocked(c Change) {
	if r.cfg.Observe != nil {
		c.At = time.Now()
		r.changes = append(r.changes, c)
	}
}

// unlock ends what was done under mu, and tells who observes. Whoever changed
// something unlocks with it.
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
