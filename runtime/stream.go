package runtime

import (
	"context"
	"io"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
)

// Streams are a program's input and output, in the hands of who runs it.
//
// Each Writer is written to by one goroutine at a time, and not after the call
// has returned: one that blocks for ever keeps the call. Stdin is read by one
// goroutine; a Read that is under way when the program ends is not waited for,
// so whoever made Stdin should close it then.
type Streams struct {
	Stdin          io.Reader // nil: the program has no input
	Stdout, Stderr io.Writer // nil: what is written there is thrown away

	// TTY gives the program a terminal. What it writes to either output then
	// comes out of Stdout.
	TTY bool

	// Resize tells the terminal's size, now and whenever it changes. Nil: it
	// does not. It need not be closed.
	Resize <-chan TerminalSize
}

// Options returns which streams to ask a StreamServer for when s will be passed
// on. Output that nobody wants is asked for where some stream has to be.
func (s Streams) Options() StreamOptions {
	return StreamOptions{
		Stdin: s.Stdin != nil, TTY: s.TTY,
		Stdout: s.Stdout != nil || s.TTY || s.Stderr == nil,
		Stderr: s.Stderr != nil && !s.TTY,
	}
}

// A TerminalSize is counted in characters.
type TerminalSize struct{ Width, Height uint16 }

// A StreamExecer is a Runtime that runs commands in its containers and has their
// streams in hand, as `kubectl exec -it` wants it. Without it, commands without
// input can be run by an Execer.
type StreamExecer interface {
	// StreamExec runs cmd in the container to its end, and returns its exit
	// code: that a command failed is no error. When ctx ends the streams are cut
	// at once and ctx's error is returned; whether the command goes on is the
	// runtime's choice (those of the CRI kill it when its input ends, or not at
	// all).
	StreamExec(ctx context.Context, containerID string, cmd []string, s Streams) (exitCode int32, err error)
}

// An Attacher is a Runtime that connects to the main process of a container.
// Without it, what the container has written can be read from its log
// (LogReader), and its input is out of reach.
type Attacher interface {
	// Attach passes streams on until the container's main process ends, or
	// ctx does, which is ctx's error. s.TTY must be what the container's spec
	// says.
	Attach(ctx context.Context, containerID string, s Streams) error
}

// A PortForwarder is a Runtime that connects to the ports of pods from inside
// their network. Without it, a port that listens on the pod's address can be
// dialled there, if the node's network lets one.
type PortForwarder interface {
	// PortForward makes one connection to the port in the pod's network, on
	// its loopback interface, and copies between it and conn until the pod's
	// end has nothing more to say, conn fails, or ctx ends. It closes conn
	// before it returns. A port where nobody listens is an error.
	PortForward(ctx context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error
}

// A StreamServer is a Runtime that serves streams itself, for a proxy such as
// the kubelet's HTTP server. The URLs are secrets, good for one connection
// within a minute or so, and speak the remotecommand and port-forward protocols
// over SPDY/3.1. Without it (ErrUnsupported), the proxy ends the client's
// protocol itself and uses StreamExecer, Attacher and PortForwarder.
type StreamServer interface {
	ExecURL(ctx context.Context, containerID string, cmd []string, want StreamOptions) (*url.URL, error)
	AttachURL(ctx context.Context, containerID string, want StreamOptions) (*url.URL, error)
	PortForwardURL(ctx context.Context, uid types.UID, ports []int32) (*url.URL, error)
}

// StreamOptions say which streams there will be. Of Stdin, Stdout and Stderr one
// must be true; Stderr with TTY is ignored.
type StreamOptions struct{ Stdin, Stdout, Stderr, TTY bool }

// A LogReader is a Runtime whose containers' logs are files of this host, in the
// CRI's format. Without it, there are no logs to show.
type LogReader interface {
	// LogPath tells where the log of a container is. ErrUnsupported: this one
	// has none.
	LogPath(ctx context.Context, containerID string) (string, error)
}

// A LogRotator is a Runtime that can be told that a log was renamed. Without it
// (ErrUnsupported), a log can be rotated by copying and truncating only, which
// loses lines.
type LogRotator interface {
	// ReopenLog makes the runtime go on in a new file at the container's log
	// path.
	ReopenLog(ctx context.Context, containerID string) error
}
