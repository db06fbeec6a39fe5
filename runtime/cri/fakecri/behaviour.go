package fakecri

import (
	"context"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Behaviour is what a container does without being told. The zero value
// starts at once, runs until it is stopped, and exits with 143 (128 + TERM) as
// soon as it gets TERM.
//
// All times are on the clock of package time: virtual in a testing/synctest
// bubble.
type Behaviour struct {
	// StartDelay is how long StartContainer takes. StartError, if set, is what
	// it fails with then; the container has exited with 128 (ContainerCannotRun)
	// as with containerd.
	StartDelay time.Duration
	StartError string

	// RunFor is how long it runs until it exits by itself, with ExitCode, by
	// Signal (which makes the code 128 + Signal), or because of OOM (137, reason
	// OOMKilled). Zero: until it is stopped.
	RunFor   time.Duration
	ExitCode int32
	Signal   int32
	OOM      bool

	// Crashes, if above zero, is how many instances of the container (in one
	// pod) end as RunFor and the fields after it say, at once if RunFor is zero.
	// Those after them run until they are stopped. Zero: all of them end so.
	Crashes int

	// StopDelay is how long it takes to exit after TERM, with StopCode (zero:
	// 143). IgnoreTerm: it does not, and is killed with 137 when its grace is
	// over.
	StopDelay  time.Duration
	StopCode   int32
	IgnoreTerm bool

	// Message is what it writes to its terminationMessagePath when it ends by
	// itself.
	Message string

	// Logs are the lines it prints.
	Logs []LogLine

	// Endpoints are those at which it serves while it runs.
	Endpoints []Endpoint

	// Memory in bytes, CPU in cores and Disk in bytes (of the writable layer)
	// are what it uses.
	Memory, CPU, Disk Curve

	// Exec answers commands run in it, also through ExecSync; it should return
	// when ctx ends. No stream of s is nil. Nil: what ExecRules say. It cannot be
	// written in YAML.
	Exec func(ctx context.Context, cmd []string, s runtime.Streams) (exitCode int32, err error)

	// ExecRules answer commands where there is no Exec: the first whose Command
	// is a prefix of the command's words. A command with no rule prints nothing
	// and exits with 0.
	ExecRules []ExecRule

	// Forward answers connections that are forwarded to ports of its pod at which
	// no container has an Endpoint; it should return when ctx ends. Nil: they are
	// refused. It cannot be written in YAML.
	Forward func(ctx context.Context, port int32, conn io.ReadWriteCloser) error
}

// A LogLine is a line, or many of them, that a container prints.
type LogLine struct {
	After time.Duration // since its start, or since the line before it was printed the last time
	Every time.Duration // zero: it is printed once; else again and again, at least 1ms apart
	Times int           // at most so often; zero: as long as the container runs
	Text  string        // without the newline; %d, if it has one, is the number of the line, from 1
	Err   bool          // to stderr
}

// An Endpoint is a port on which a container serves while it runs, so that
// probes find it: at the pod's address for Runtime.DialContext, and on loopback
// with Config.Listen.
type Endpoint struct {
	// Port of the container, and of 127.0.0.1, where one of two that are the
	// same does not listen. Zero: there, any that is free.
	Port int32
	// HTTP: it answers GET of any path with 200, or with 503 while it is not
	// ready. Otherwise it accepts connections while it is ready, and refuses
	// them while it is not.
	HTTP bool
	// ReadyAfter its start it is ready; UnreadyAfter (zero: never) it stops to
	// be.
	ReadyAfter, UnreadyAfter time.Duration
}

// An ExecRule is what becomes of commands.
type ExecRule struct {
	Command        []string // prefix of the words; empty: every command
	Stdout, Stderr string
	ExitCode       int32
	Takes          time.Duration
	// Fails: from the first to the Fails-th run of it, it exits with 1 instead.
	Fails int
}

// A Curve is a use of something over a container's life. The zero value uses
// nothing.
type Curve struct {
	// Points by time since the start, in order; between two points the use goes
	// in a straight line, before the first and after the last it stays. Two
	// points at one time are a jump.
	Points []Point
	// Repeat: after the last point it begins again.
	Repeat bool
}

// A Point of a Curve.
type Point struct {
	At    time.Duration
	Value float64
}

// An ImageBehaviour is what an image is and how its pull goes. The zero value
// is pulled at once and has one layer of 1 MiB.
type ImageBehaviour struct {
	// Layers are the sizes in bytes of what it is made of. Layers of the same
	// name are shared between images.
	Layers []Layer
	// PullTime is how long a pull takes; PullError what it fails with. PullFails,
	// if above zero, is how many pulls fail before one works; zero with a
	// PullError: all.
	PullTime  time.Duration
	PullError string
	PullFails int
	// Absent: the registry does not have it; pulls fail with NotFound.
	Absent bool
	// Auth, if set, is the "user:password" that a pull has to bring.
	Auth string
	// User as the image's configuration names it: "1000", "nobody", "".
	User string
	// Present: it is on the node from the beginning. Pinned: the runtime says
	// that it must not be collected.
	Present, Pinned bool
}

// A Layer of an image.
type Layer struct {
	Name string
	Size uint64
}
