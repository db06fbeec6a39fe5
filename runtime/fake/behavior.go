package fake

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Behavior specifies how a container runs. The zero value starts immediately, is ready
// when it has started, runs until it is stopped, and exits with 143 (128 + SIGTERM) as
// soon as it gets SIGTERM. The package documentation has its text, and which runtime
// implements which field.
//
// Times are at most ten years. They use package time, which is virtual in a
// testing/synctest bubble.
type Behavior struct {
	// QueueDelay is how long each start is queued: the call that starts the container
	// returns, and the container runs after this time.
	QueueDelay time.Duration

	// StartDelay is the duration of each start, as if an image had to be pulled. The call
	// that starts the container waits for it.
	StartDelay time.Duration

	// Fail makes starts fail after StartDelay. Nil: they succeed.
	Fail *Failure

	// Exit makes the container exit without being stopped. Nil: it runs until it is stopped.
	Exit *Exit

	// StopDelay is the time from SIGTERM to the exit with StopCode; zero means 143. If
	// IgnoreTERM is set, the container is killed at the end of the grace period, with 137.
	StopDelay  time.Duration
	StopCode   int32
	IgnoreTERM bool

	// ReadyAfter is the time from the start until the container is ready. NeverReady is
	// set for a container that runs, but is never ready. Flap, if positive, is the time for
	// which the container is alternately ready and not ready, beginning with ready.
	ReadyAfter time.Duration
	NeverReady bool
	Flap       time.Duration

	// Startup probes fail until StartedAfter, and liveness probes fail from UnhealthyAfter
	// on, both since the start. Zero means that they succeed. Liveness declares a liveness
	// probe that succeeds.
	StartedAfter, UnhealthyAfter time.Duration
	Liveness                     bool

	// EvictAfter is the time from the start until the pod is evicted. Zero: it is not.
	EvictAfter time.Duration

	// Version distinguishes images with equal behavior.
	Version int

	// Logs are the lines that the container prints.
	Logs []LogLine

	// Endpoints are the ports on which the container serves while it runs.
	Endpoints []Endpoint

	// Memory in bytes, CPU in cores and Disk in bytes (of the writable layer) are the
	// resource usage.
	Memory, CPU, Disk Curve

	// Commands are the results of commands. The first one whose Prefix matches applies.
	// Commands that none matches exit with 0, without output.
	Commands []Command

	// The functions below have no text. They should return when ctx is done, and the
	// streams are not nil.

	// Exec runs a command in the container. If nil, Commands apply.
	Exec func(ctx context.Context, cmd []string, s runtime.Streams) (exitCode int32, err error)

	// Attach connects to the main process. If nil, a client gets the lines of Logs.
	Attach func(ctx context.Context, s runtime.Streams) error

	// Forward serves connections that are forwarded to ports of the pod without an
	// Endpoint. If nil, they are refused.
	Forward func(ctx context.Context, port int32, conn io.ReadWriteCloser) error
}

// OOMKilled is the reason of a container that the kernel killed because of its memory.
const OOMKilled = "OOMKilled"

// An Exit specifies how a container exits.
type Exit struct {
	After time.Duration // since its start
	Code  int32         // from 0 to 255; 128 + number of a signal if one kills it

	// Reason is the reason in the container status, for example OOMKilled. If empty, it is
	// Completed for code 0, else Error.
	Reason string

	// Message is the termination message.
	Message string

	// Crashes, if positive, is the number of instances of the container in a pod that exit;
	// later ones run until they are stopped.
	Crashes int
}

// A Failure is the reason and the message of a failed start, with the reasons of the
// Kubernetes API: ErrImagePull, CreateContainerError.
type Failure struct {
	Reason  string // not empty, without ": "
	Message string

	// For is the time since the first attempt for which starts fail. Zero: always.
	For time.Duration
}

// A LogLine is a line that a container prints once or repeatedly.
type LogLine struct {
	After time.Duration // since the start, or since the previous line was last printed
	Every time.Duration // interval, at least 1ms; zero means that it is printed once
	Times int           // maximum number of repetitions; zero means no limit
	Text  string        // without the newline; %d is replaced by the line number, from 1
	Err   bool          // to stderr
}

// Endless reports whether the line is repeated until the container exits.
func (l LogLine) Endless() bool { return l.Every > 0 && l.Times == 0 }

// An Endpoint is a port on which a container serves while it runs.
type Endpoint struct {
	// Port is the port of the container. Zero means any free port.
	Port int32

	// HTTP makes it answer GET requests with 200, or with 503 while it is not ready.
	// Otherwise it accepts connections while it is ready, and refuses them while it is not.
	HTTP bool

	// ReadyAfter and UnreadyAfter are the times from the start until the endpoint becomes
	// ready and stops being ready. A zero UnreadyAfter means never.
	ReadyAfter, UnreadyAfter time.Duration
}

// Ready reports whether the endpoint of a container that has run for age is ready.
func (e Endpoint) Ready(age time.Duration) bool {
	return age >= e.ReadyAfter && (e.UnreadyAfter == 0 || age < e.UnreadyAfter)
}

// Streams returns s with streams that are not nil: an empty input, and outputs that discard. With
// TTY, stderr is stdout.
func Streams(s runtime.Streams) runtime.Streams {
	if s.Stdin == nil {
		s.Stdin = strings.NewReader("")
	}
	if s.Stdout == nil {
		s.Stdout = io.Discard
	}
	switch {
	case s.TTY:
		s.Stderr = s.Stdout
	case s.Stderr == nil:
		s.Stderr = io.Discard
	}
	return s
}

// Ready reports whether a container that has run for age is ready, and the time until that
// changes; zero if it does not change.
func (b *Behavior) Ready(age time.Duration) (ready bool, changesIn time.Duration) {
	switch {
	case b.NeverReady:
		return false, 0
	case age < b.ReadyAfter:
		return false, b.ReadyAfter - age
	case b.Flap <= 0:
		return true, 0
	}
	age -= b.ReadyAfter
	return age/b.Flap%2 == 0, b.Flap - age%b.Flap
}

// An Image specifies an image and the result of its pull. The zero value is pulled
// immediately and has one layer of 1 MiB.
type Image struct {
	// Layers are the layers. Layers of the same name are shared between images.
	Layers []Layer
	// PullTime is the duration of a pull. If PullError is set, pulls fail with it:
	// the first PullFails pulls, or all if PullFails is zero.
	PullTime  time.Duration
	PullError string
	PullFails int
	// Absent makes pulls fail with NotFound, as if the registry did not have it.
	Absent bool
	// Auth is the "user:password" required for a pull. Empty means none.
	Auth string
	// User is the user in the image's configuration: "1000", "www-data", "".
	User string
	// Present makes the image present from the beginning. Pinned images must not be
	// garbage-collected.
	Present, Pinned bool
}

// A Layer is a layer of an image, with its size in bytes.
type Layer struct {
	Name string
	Size uint64
}
