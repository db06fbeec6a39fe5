package cloud

import (
	"context"
	"errors"
	"time"
)

// An API is the part of a cloud's client that a Runtime uses. It must be safe for concurrent
// use. Each call returns when the operation is complete, as the pollers of most client
// libraries do. If ctx is done it returns ctx's error, and the operation continues.
//
// A machine or process that does not exist (any more) is a runtime.ErrNotFound, a cloud that
// does not answer a runtime.ErrUnavailable.
type API interface {
	Machines
	Processes
}

// Machines manages machines. A stopped machine is listed, with its processes and their exit
// codes, until it is destroyed.
type Machines interface {
	// ListMachines lists machines that have all of the tags, in any state and order.
	// The caller owns the result.
	ListMachines(ctx context.Context, tags map[string]string) ([]Machine, error)

	// CreateMachine creates a machine and returns when it is running. A second call with
	// the same token waits for the first machine and returns its ID.
	CreateMachine(ctx context.Context, m NewMachine) (id string, err error)

	// TagMachine adds or replaces tags of a machine.
	TagMachine(ctx context.Context, id string, tags map[string]string) error

	// StopMachine kills the processes of a machine and stops it. It returns nil if the
	// machine is stopped.
	StopMachine(ctx context.Context, id string) error

	// DestroyMachine removes a machine with its processes and tags.
	DestroyMachine(ctx context.Context, id string) error
}

// Processes manages processes on machines. Each has its own ID.
type Processes interface {
	// StartProcess starts a process when the machine is running, and returns when the
	// process is running. A second call with the same token for the same machine waits
	// for the first process.
	StartProcess(ctx context.Context, machine string, p NewProcess) error

	// StopProcess sends TERM, and KILL after the grace period, and returns when the
	// process has terminated. A zero grace period sends KILL immediately. The grace
	// period of a later call replaces an earlier one.
	StopProcess(ctx context.Context, id string, grace time.Duration) error

	// RemoveProcess removes a terminated process.
	RemoveProcess(ctx context.Context, id string) error
}

// An Eventer is an API that reports changes. Without it, changes are detected by listing.
type Eventer interface {
	// Events calls changed with the tags of each machine that has changed, or whose
	// processes have, after the change is listed. It returns nil if ctx is done.
	Events(ctx context.Context, changed func(tags map[string]string)) error
}

// ErrNoImage is returned by StartProcess if the image does not exist.
var ErrNoImage = errors.New("no such image")

// A NewMachine specifies a machine to create.
type NewMachine struct {
	Token string
	Tags  map[string]string
}

// A NewProcess specifies a process to start.
type NewProcess struct {
	Token   string
	Tags    map[string]string
	Image   string
	Command []string // empty: that of the image
	Env     map[string]string
}

// A Machine is a listed machine.
type Machine struct {
	ID        string
	Tags      map[string]string
	State     State
	IP        string // empty unless running
	Created   time.Time
	Processes []Process // in any order
}

// A Process is a listed process. Times of events that have not happened are zero.
type Process struct {
	ID       string
	Tags     map[string]string
	Image    string
	State    State
	Created  time.Time
	Started  time.Time
	Ended    time.Time
	ExitCode int32
	Message  string // of the exit
}

// A State is the state of a machine or a process.
type State int

// The states, in the only possible order.
const (
	Starting State = iota
	Running
	Ended
)
