package podworker

import "fmt"

// A State is how far a pod's life has gone. It moves down this list, and each
// state says which Handler method may be called:
//
//	Waiting ──its turn──▶ Syncing ──kill, delete, terminal──▶ Stopping
//	   │                   Sync                                  │ the Sync in flight has returned
//	   │                                                         ▼
//	   │                                                     Terminating ──stopped──▶ Cleaning ──clean──▶ Finished
//	   │                                                      Terminate               Cleanup               ▲
//	   └──────────────────── removed or deleted before the start ──────────────────────────────────────────┘
//
// Only static pods wait; every other begins in Syncing (pw-28). One that is
// killed while it waits has nothing to stop, and goes on to Cleaning, so that its
// status says why it never ran. A deletion that
// arrives when all is done brings Finished back to Cleaning once, so that the
// Handler can let the object go.
//
// Stopping is the moment between a request to terminate and its
// acknowledgement by the worker (pw-9): who sets things up for a pod stops at
// Stopping, who tears down waits for Terminating.
//
// States are ordered, and what others want to know of a pod (section 2.2) is a
// comparison: containers may run below Cleaning, termination is requested from
// Stopping on, no container is started from Terminating on, what the runtime
// holds may go from Cleaning on, and all of it is over at Finished. For pods
// that have no life [Loop.State] answers.
type State int

// The states of a pod.
const (
	Waiting     State = iota // known, not started: its turn has not come (pw-29)
	Syncing                  // Sync is called for it
	Stopping                 // termination is requested; a Sync may still be in flight
	Terminating              // Terminate is called until its containers have stopped
	Cleaning                 // nothing runs; Cleanup is called until nothing is left
	Finished                 // nothing will be called any more
)

var stateNames = [...]string{"waiting", "syncing", "stopping", "terminating", "cleaning", "finished"}

// String returns the state in lower case: "syncing".
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// MarshalText writes the state as String has it.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("podworker: %q is no state of a pod", text)
}
