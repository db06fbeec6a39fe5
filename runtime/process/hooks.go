package process

import (
	"time"

	"github.com/kubeparts/kubeparts/compose"
)

// Hooks report events, for metrics and logs. Any of them may be nil. They are
// called from the goroutines that call the Runtime, without locks held, and
// should return quickly.
type Hooks struct {
	// Started is called after each attempt to start a container.
	Started func(StartInfo)

	// Exited is called when an exit is detected, which can be after it happened.
	Exited func(ExitInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Started, o.Started)
		compose.Add(&h.Exited, o.Exited)
	}
	return h
}

// A StartInfo describes an attempt to start a container.
type StartInfo struct {
	ContainerID string
	PID         int           // 0 if Err is not nil
	Took        time.Duration // until the supervisor had started the process
	Err         error
}

// An ExitInfo describes the exit of a container.
type ExitInfo struct {
	ContainerID string
	Code        int32 // 128+n if signal n terminated it
	Signal      int   // 0 if none
	Reason      string

	// Lost reports that the supervisor was killed, so that the exit code is not
	// the real one.
	Lost bool
}
