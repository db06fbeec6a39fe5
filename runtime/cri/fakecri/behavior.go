package fakecri

import (
	"context"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Behavior specifies how a container runs. The zero value starts immediately, runs
// until it is stopped, and exits with 143 (128 + SIGTERM) as soon as it gets SIGTERM.
//
// All times use package time, which is virtual in a testing/synctest bubble.
type Behavior struct {
	// StartDelay is the duration of StartContainer. If StartError is set, it then
	// fails with this message, and the container has exited with 128
	// (ContainerCannotRun), as in containerd.
	StartDelay time.Duration
	StartError string

	// RunFor is the time until the container exits with ExitCode, with code 128 +
	// Signal if Signal is set, or with 137 and reason OOMKilled if OOM is set. Zero
	// means that it runs until it is stopped.
	RunFor   time.Duration
	ExitCode int32
	Signal   int32
	OOM      bool

	// Crashes, if above zero, is the number of instances of the container in a pod
	// that exit as specified by RunFor to OOM, immediately if RunFor is zero. Later
	// ones run until they are stopped. Zero means no limit.
	Crashes int

	// StopDelay is the time from SIGTERM to the exit with StopCode (zero means 143).
	// If IgnoreTerm is set, the container is killed with 137 at the end of the grace
	// period.
	StopDelay  time.Duration
	StopCode   int32
	IgnoreTerm bool

	// Message is written to the terminationMessagePath when the container exits
	// without being stopped.
	Message string

	// Logs are the lines that the container prints.
	Logs []LogLine

	// Endpoints are the ports on which the container serves while it runs.
	Endpoints []Endpoint

	// Memory in bytes, CPU in cores and Disk in bytes (of the writable layer) are the
	// resource usage.
	Memory, CPU, Disk Curve

	// Exec runs a command in the container, also for ExecSync; it should return when
	// ctx is done. The streams of s are not nil. If nil, ExecRules apply. It cannot be
	// set in YAML.
	Exec func(ctx context.Context, cmd []string, s runtime.Streams) (exitCode int32, err error)

	// ExecRules are used if Exec is nil; the first rule whose Command is a prefix of
	// the command applies. A command without a rule exits with 0 and no output.
	ExecRules []ExecRule

	// Forward serves connections that are forwarded to ports of the pod without an
	// Endpoint; it should return when ctx is done. If nil, they are refused. It cannot
	// be set in YAML.
	Forward func(ctx context.Context, port int32, conn io.ReadWriteCloser) error
}

// A LogLine is a line that a container prints once or repeatedly.
type LogLine struct {
	After time.Duration // since the start, or since the previous line was last printed
	Every time.Duration // interval, at least 1ms; zero means that it is printed once
	Times int           // maximum number of repetitions; zero means no limit
	Text  string        // without the newline; %d is replaced by the line number, from 1
	Err   bool          // to stderr
}

// An Endpoint is a port on which a container serves while it runs: at the pod's
// address with Runtime.DialContext, and on loopback with Config.Listen.
type Endpoint struct {
	// Port is the port of the container, and with Config.Listen of 127.0.0.1; if
	// another container listens there, it does not. Zero means any free port of
	// 127.0.0.1.
	Port int32
	// HTTP makes it answer GET requests with 200, or with 503 while it is not ready.
	// Otherwise it accepts connections while it is ready, and refuses them while it is
	// not.
	HTTP bool
	// ReadyAfter and UnreadyAfter are the times from the start until the endpoint
	// becomes ready and stops being ready. A zero UnreadyAfter means never.
	ReadyAfter, UnreadyAfter time.Duration
}

// An ExecRule specifies the result of commands.
type ExecRule struct {
	Command        []string // prefix of the arguments; empty matches every command
	Stdout, Stderr string
	ExitCode       int32
	Takes          time.Duration
	// Fails is the number of runs, from the first one on, that exit with 1 instead.
	Fails int
}

// A Curve is resource usage over the time since the start. The zero value is no
// usage.
type Curve struct {
	// Points are sorted by time. Usage is interpolated between two points and constant
	// before the first and after the last. Two points with the same time are a step.
	Points []Point
	// Repeat restarts the curve after the last point.
	Repeat bool
}

// A Point is a point of a Curve.
type Point struct {
	At    time.Duration
	Value float64
}

// An ImageBehavior specifies an image and the result of its pull. The zero value is
// pulled immediately and has one layer of 1 MiB.
type ImageBehavior struct {
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
