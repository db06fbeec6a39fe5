package fakecri

import (
	"time"
)

// A Call is one call of a method of the CRI.
type Call struct {
	// Method is its name in the CRI: RunPodSandbox, PullImage. StreamExec,
	// StreamAttach and StreamPortForward are the streams themselves, where Exec,
	// Attach and PortForward only ask for them.
	Method string

	// Pod is the UID, and Container the name, of what it concerns; Image is what
	// PullImage, ImageStatus and RemoveImage are about. Empty for lists and
	// where the ID in the request is not known.
	Pod, Container, Image string

	// ID is that of the sandbox or container in the request, as it stands there,
	// whether or not it is known; empty where there is none.
	ID string

	// Number of the call of this method since New, from 1.
	Number int
}

// A Fault is what goes wrong with one call. The zero value is no fault.
type Fault struct {
	// Delay is how long the call is held up before it does anything.
	Delay time.Duration

	// Lost: the call takes effect, and its answer is lost: Err, or Hang, hits it
	// afterwards. Without it they hit it before it does anything.
	Lost bool

	// Hang holds the call up until its context ends, as a half-dead socket does.
	Hang bool

	// Err is what the call returns; one without a gRPC status gets code Unknown
	// on its way over a socket. Nil: it goes on.
	Err error

	// Stale: a list answers what it would have answered this long ago.
	Stale time.Duration
}
