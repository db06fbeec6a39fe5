package podworker

import "fmt"

// A State is the position of a pod in its lifecycle. It only advances, and determines
// which method of the [Handler] may be called:
//
//	Waiting ──first in queue──▶ Syncing ──kill, delete, terminal──▶ Stopping
//	   │                         Sync                                  │ Sync has returned
//	   │                                                               ▼
//	   │       Finished ◀──cleaned── Cleaning ◀──terminated────── Terminating
//	   │           ▲                  Cleanup                      Terminate
//	   └───────────┘ removed or deleted before the start
//
// Only static pods wait; all others begin in Syncing. A pod that is killed in Waiting has
// no containers and advances to Cleaning, so that its status contains the reason. A deletion
// that arrives in Finished moves the pod back to Cleaning once, so that the Handler can
// report the deletion.
//
// Stopping is the time between a request to terminate and its acknowledgment by the worker:
// subsystems that set up resources for a pod stop at Stopping; those that release them wait
// for Terminating.
//
// States are ordered: containers may run below Cleaning, termination was requested from
// Stopping on, no container is started from Terminating on, and containers may be removed
// from Cleaning on. [Table.State] also returns the state of a pod without a worker.
type State int

// The states of a pod.
const (
	Waiting     State = iota // a static pod of the same name has not finished
	Syncing                  // Sync is called
	Stopping                 // termination is requested; a Sync may be in progress
	Terminating              // Terminate is called until it succeeds
	Cleaning                 // no container runs; Cleanup is called until it succeeds
	Finished                 // no method is called
)

var stateNames = [...]string{"waiting", "syncing", "stopping", "terminating", "cleaning", "finished"}

// String returns the state in lower case: "syncing".
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// MarshalText returns the result of String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the result of MarshalText.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("podworker: unknown state %q", text)
}
