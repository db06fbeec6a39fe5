package process

import "time"

// Hooks are called as things happen, for metrics and logs. Any may be nil.
// They are called from the goroutines that call the Runtime, without locks
// held, and should return fast.
type Hooks struct {
	// Started: StartContainer tried.
	Started func(StartInfo)

	// Exited: an exit was noticed, which can be after it happened.
	Exited func(ExitInfo)

	// Corrupt: a state file could not be read; see CorruptError.
	Corrupt func(CorruptInfo)
}

// A StartInfo tells how a start went.
type StartInfo struct {
	ContainerID string
	PID         int           // 0 if Err is not nil
	Took        time.Duration // of the supervisor to come up and start the process
	Err         error
}

// An ExitInfo tells how a container ended.
type ExitInfo struct {
	ContainerID string
	Code        int32 // 128+n if signal n killed it
	Signal      int   // 0 if none
	Reason      string

	// Lost: its supervisor was killed, nobody knows the real exit code.
	Lost bool
}

// A CorruptInfo names a state file that is not what it should be.
type CorruptInfo struct {
	Path string
	Err  error
}
