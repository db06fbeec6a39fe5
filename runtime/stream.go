package runtime

import (
	"context"
	"io"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
)

// Streams are the input and output of a program.
//
// Each Writer is called by one goroutine at a time, and not after the call has returned: a Write
// that blocks forever blocks the call. Stdin is read by one goroutine; a Read in progress when the
// program exits is not waited for, so the caller should close Stdin then.
type Streams struct {
	Stdin          io.Reader // nil means no input
	Stdout, Stderr io.Writer // nil discards the output

	// TTY gives the program a terminal. Both of its outputs are then written to Stdout.
	TTY bool

	// Resize delivers the initial size of the terminal and each change. May be nil, and need
	// not be closed.
	Resize <-chan TerminalSize
}

// Options returns the streams to request from a StreamServer for s. Stdout is requested if no other
// stream is, since at least one is required.
func (s Streams) Options() StreamOptions {
	return StreamOptions{
		Stdin: s.Stdin != nil, TTY: s.TTY,
		Stdout: s.Stdout != nil || s.TTY || s.Stderr == nil,
		Stderr: s.Stderr != nil && !s.TTY,
	}
}

// A TerminalSize is in characters.
type TerminalSize struct{ Width, Height uint16 }

// A StreamExecer is a Runtime that runs commands in its containers with streams, for kubectl exec
// -it. Without it, commands without input can be run by an Execer.
type StreamExecer interface {
	// StreamExec runs cmd in the container until it exits and returns its exit code; a code
	// other than 0 is no error. When ctx is done the streams are closed at once and ctx's error
	// is returned; the command may keep running (CRI runtimes kill it when its input is closed,
	// or not at all).
	StreamExec(ctx context.Context, containerID string, cmd []string, s Streams) (exitCode int32, err error)
}

// An Attacher is a Runtime that connects to the main process of a container.
// Without it, the output of the container can be read from its log (LogReader), and its input cannot
// be written.
type Attacher interface {
	// Attach copies the streams until the container's main process exits, or until ctx is done,
	// and then returns ctx's error. s.TTY must equal the tty field of the container's spec.
	Attach(ctx context.Context, containerID string, s Streams) error
}

// A PortForwarder is a Runtime that connects to ports of pods inside their network. Without it, a
// port on the pod's address can be dialed if it is reachable from the node.
type PortForwarder interface {
	// PortForward connects to the port on the loopback interface of the pod's network and
	// copies between the connection and conn until the pod closes its side, conn fails, or ctx
	// is done. It closes conn before it returns. It returns an error if nothing listens on the
	// port.
	PortForward(ctx context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error
}

// A StreamServer is a Runtime that serves streams itself, for a proxy such as the kubelet's HTTP
// server. The URLs are secrets, valid for one connection within about a minute, and serve the
// remotecommand and port-forward protocols over SPDY/3.1. Without it, the proxy terminates the
// client's protocol itself and uses StreamExecer, Attacher and PortForwarder.
type StreamServer interface {
	ExecURL(ctx context.Context, containerID string, cmd []string, want StreamOptions) (*url.URL, error)
	AttachURL(ctx context.Context, containerID string, want StreamOptions) (*url.URL, error)
	PortForwardURL(ctx context.Context, uid types.UID, ports []int32) (*url.URL, error)
}

// StreamOptions select streams. At least one of Stdin, Stdout and Stderr must be true; Stderr is
// ignored with TTY.
type StreamOptions struct{ Stdin, Stdout, Stderr, TTY bool }

// A LogReader is a Runtime whose containers' logs are files on this host, in the CRI log format.
// Without it, logs cannot be read.
type LogReader interface {
	// LogPath returns the path of a container's log. It returns ErrUnsupported if the container
	// has none.
	LogPath(ctx context.Context, containerID string) (string, error)
}

// A LogRotator is a Runtime that reopens log files after a rename. Without it, a log can be rotated
// only by copying and truncating it, which loses lines.
type LogRotator interface {
	// ReopenLog makes the runtime continue in a new file at the container's log path.
	ReopenLog(ctx context.Context, containerID string) error
}
