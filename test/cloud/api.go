package cloud

import (
	"context"
	"errors"
	"time"
)

// An API is what a cloud is asked for. Its calls come from many goroutines, and each
// returns when what it asks for is done, as the pollers of most clouds' libraries do.
// When ctx ends they return ctx's error, and what they had begun goes on.
//
// What is not there (any more) is runtime.ErrNotFound, a cloud that does not answer
// runtime.ErrUnavailable.
type API interface {
	Machines
	Processes
}

// Machines of the cloud. One that has ended stays, with its processes and their exits,
// until it is destroyed.
type Machines interface {
	// ListMachines lists machines that have all of the tags, in any state and order.
	// The caller owns the result.
	ListMachines(ctx context.Context, tags map[string]string) ([]Machine, error)

	// CreateMachine makes a machine and returns when it is up. A second call with the
	// same token makes no second machine: it waits for the first, and returns its ID.
	CreateMachine(ctx context.Context, m NewMachine) (id string, err error)

	// TagMachine adds tags to a machine, or changes them.
	TagMachine(ctx context.Context, id string, tags map[string]string) error

	// StopMachine ends whatever runs on a machine, at once, and the machine. One that
	// has ended is no error.
	StopMachine(ctx context.Context, id string) error

	// DestroyMachine removes a machine with all that is known of it.
	DestroyMachine(ctx context.Context, id string) error
}

// Processes on the machines. Each is one run of a program, under an ID of its own.
type Processes interface {
	// StartProcess starts a process, once the machine is up, and returns when it runs.
	// A second call with the same token on the same machine starts no second one.
	StartProcess(ctx context.Context, machine string, p NewProcess) error

	// StopProcess sends a process TERM, KILL when the grace is over, and returns when
	// it has ended. With a grace of 0 it is KILL at once. Of two calls the later one's
	// grace counts.
	StopProcess(ctx context.Context, id string, grace time.Duration) error

	// RemoveProcess forgets a process that has ended.
	RemoveProcess(ctx context.Context, id string) error
}

// An Eventer is an API that tells of changes. Without it, changes are found by listing.
type Eventer interface {
	// Events calls changed with the tags of each machine of which something has
	// changed, also on it, once the list shows that. It returns nil when ctx ends.
	Events(ctx context.Context, changed func(tags map[string]string)) error
}

// ErrNoImage: the cloud does not find the image of a process.
var ErrNoImage = errors.New("no such image")

// A NewMachine says which machine to create.
type NewMachine struct {
	Token string
	Tags  map[string]string
}

// A NewProcess says which process to start.
type NewProcess struct {
	Token   string
	Tags    map[string]string
	Image   string
	Command []string // empty: the image's
	Env     map[string]string
}

// A Machine as a list shows it.
type Machine struct {
	ID        string
	Tags      map[string]string
	State     State
	IP        string // "" unless it runs
	Created   time.Time
	Processes []Process // in any order
}

// A Process as a list shows it. What has not happened yet is zero.
type Process struct {
	ID       string
	Tags     map[string]string
	Image    string
	State    State
	Created  time.Time
	Started  time.Time
	Ended    time.Time
	ExitCode int32
	Message  string // its last words
}

// A State is that of a machine or of a process.
type State int

// The states, in their order: nothing goes back.
const (
	Starting State = iota
	Running
	Ended
)
