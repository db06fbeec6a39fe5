package streamserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Server serves the streams of connections. The zero value gives clients no time to open
// streams.
type Server struct {
	// Idle is the longest time without traffic. Zero means no limit.
	Idle time.Duration

	// Creation is the longest time from the upgrade of a connection until the client
	// has opened its streams. The library waits that long also for a client that has
	// disconnected.
	Creation time.Duration
}

// Exec serves the streams of a command to a client: those set in opts and no others. It
// calls run at most once and returns when the streams are no longer used; the ctx of run
// is done when the client has disconnected. The client receives the exit code or the
// error of run. A request without a protocol upgrade is answered with an error.
func (s Server) Exec(w http.ResponseWriter, r *http.Request, opts runtime.StreamOptions, run func(context.Context, runtime.Streams) (code int32, err error)) {
	s.serve(w, r, opts, run, "error executing command in container: %w", func(w http.ResponseWriter, r *http.Request, c *command) {
		remotecommand.ServeExec(w, r, c, "", "", "", nil, options(opts), s.Idle, s.Creation, remotecommand.SupportedStreamingProtocols)
	})
}

// Attach serves the streams of a container to a client as Exec serves those of a
// command.
func (s Server) Attach(w http.ResponseWriter, r *http.Request, opts runtime.StreamOptions, run func(context.Context, runtime.Streams) error) {
	attach := func(ctx context.Context, streams runtime.Streams) (int32, error) { return 0, run(ctx, streams) }
	s.serve(w, r, opts, attach, "error attaching to container: %w", func(w http.ResponseWriter, r *http.Request, c *command) {
		remotecommand.ServeAttach(w, r, c, "", "", "", options(opts), s.Idle, s.Creation, remotecommand.SupportedStreamingProtocols)
	})
}

func (s Server) serve(w http.ResponseWriter, r *http.Request, opts runtime.StreamOptions,
	run func(context.Context, runtime.Streams) (int32, error), failed string, older func(http.ResponseWriter, *http.Request, *command)) {
	client := NewClient(w, r, s.Idle)
	defer client.End()
	if RequestsV5(r) {
		serveV5(client, r.WithContext(client.Context()), opts, func(streams runtime.Streams) (int32, error) {
			code, err := run(client.Context(), streams)
			if err != nil {
				err = fmt.Errorf(failed, err)
			}
			return code, err
		})
		return
	}
	c := &command{client: client, opts: opts, run: run}
	older(client, r, c)
	if !c.begun.Load() {
		client.End() // the library does not if the client opened no streams
	}
}

func options(opts runtime.StreamOptions) *remotecommand.Options {
	return &remotecommand.Options{Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr && !opts.TTY, TTY: opts.TTY}
}

// A command implements the interfaces of the library. The library's contexts are done
// never or too early, and are ignored.
type command struct {
	client *Client
	opts   runtime.StreamOptions
	run    func(context.Context, runtime.Streams) (int32, error)
	begun  atomic.Bool
}

// ExecInContainer implements remotecommand.Executor, for which a command that fails
// is an error.
func (c *command) ExecInContainer(_ context.Context, _, _, _ string, _ []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	code, err := c.with(in, out, errOut, tty, resize)
	if err == nil && code != 0 {
		err = exitError(code)
	}
	return err
}

// AttachContainer implements remotecommand.Attacher.
func (c *command) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	_, err := c.with(in, out, errOut, tty, resize)
	return err
}

func (c *command) with(in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) (int32, error) {
	c.begun.Store(true)
	s := runtime.Streams{TTY: tty}
	// Over a WebSocket the library opens streams that were not requested.
	if in != nil && c.opts.Stdin {
		s.Stdin = in
	}
	if out != nil && c.opts.Stdout {
		s.Stdout = out
	}
	if errOut != nil && c.opts.Stderr && !tty {
		s.Stderr = errOut
	}
	ctx, cancel := context.WithCancel(c.client.Context())
	defer cancel()
	if resize != nil && tty {
		s.Resize = sizes(ctx, resize)
	}
	return c.run(ctx, s)
}

func exitError(code int32) error {
	return utilexec.CodeExitError{Code: int(code), Err: fmt.Errorf("command terminated with exit code %d", code)}
}

// sizes converts the sizes that the library reads until ctx is done.
func sizes(ctx context.Context, from <-chan remotecommand.TerminalSize) <-chan runtime.TerminalSize {
	to := make(chan runtime.TerminalSize)
	go func() {
		for {
			select {
			case size, ok := <-from:
				if !ok {
					return
				}
				select {
				case to <- runtime.TerminalSize{Width: size.Width, Height: size.Height}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}
