package fakecri

import (
	"time"
)

// A Call is one call of a method of the CRI.
type Call struct {
	// Method is the name in the CRI, for example RunPodSandbox or PullImage.
	// StreamExec, StreamAttach and StreamPortForward are the streams themselves; Exec,
	// Attach and PortForward request their URLs.
	Method string

	// Pod is the UID of the pod and Container the name of the container. Image is the
	// image of PullImage, ImageStatus and RemoveImage. They are empty for lists and if
	// the ID in the request is unknown.
	Pod, Container, Image string

	// ID is the sandbox or container ID in the request, unchanged, or empty.
	ID string

	// Number is the number of the call among those of this method since New, from 1.
	Number int
}

// A Fault is applied to one call. The zero value is no fault.
type Fault struct {
	// Delay is how long the call is delayed before it takes effect.
	Delay time.Duration

	// Lost makes the call take effect before Err or Hang is applied, as when the
	// response is lost.
	Lost bool

	// Hang blocks the call until its context is done, like an unresponsive daemon.
	Hang bool

	// Err is returned by the call, if not nil. Over a socket, an error without a gRPC
	// status gets the code Unknown.
	Err error

	// Stale makes a list return its result as of this long ago.
	Stale time.Duration
}
