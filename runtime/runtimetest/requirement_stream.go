package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// streamRequirements are the requirements of [runtime.StreamExecer], [runtime.Attacher],
// [runtime.PortForwarder] and [runtime.StreamServer].
var streamRequirements = []requirement{
	{
		name:     "StreamExecReturnsOutputAndExitCode",
		text:     "StreamExec runs a command in the container until it exits, writes its output to the caller's Stdout, and returns its exit code.",
		contract: "StreamExecer.StreamExec",
		cause:    "the exit code after the streams is not read",
		needs:    []string{"StreamExecer", "Commands.Print", "Commands.Block"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			id := t.container(t.up(pod), "long").ID
			rt := as[runtime.StreamExecer](t)
			for _, want := range []int32{0, 3} {
				var out bytes.Buffer
				code, err := rt.StreamExec(t.Context(), id, t.suite.Commands.Print("hello", want), runtime.Streams{Stdout: &out})
				if errors.Is(err, runtime.ErrUnsupported) {
					t.Skipf("StreamExec is not supported: %v", err)
				}
				if err != nil || code != want || out.String() != "hello" {
					t.Errorf("StreamExec of a command that prints hello and exits with %d: %q, %d, %v", want, out.String(), code, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if code, err := rt.StreamExec(ctx, id, t.suite.Commands.Block, runtime.Streams{}); err == nil {
				t.Errorf("StreamExec with an expired context returned %d and no error", code)
			}
			if took := time.Since(begun); took > t.suite.Timing.Timeout {
				t.Errorf("StreamExec took %v with a context of 0.3 s", took)
			}
			if code, err := rt.StreamExec(t.Context(), id+"-not", t.suite.Commands.Print("hello", 0), runtime.Streams{}); err == nil {
				t.Errorf("StreamExec in a container that does not exist returned %d and no error", code)
			}
		},
	},
	{
		name:     "StreamExecPassesInput",
		text:     "StreamExec copies Stdin to the command until its end, which is the end of the command's input, and returns after all output.",
		contract: "Streams.Stdin; StreamExecer.StreamExec",
		cause:    "the end of the input is not passed on, or the call returns before the output has been read",
		needs:    []string{"StreamExecer", "Commands.Echo"},
		check: func(t *checkT) {
			id := t.running().ID
			want := strings.Repeat("0123456789abcdef", 1<<12) // more than a pipe holds
			var out bytes.Buffer
			code, err := t.stream(t.Context(), id, t.suite.Commands.Echo, runtime.Streams{Stdin: strings.NewReader(want), Stdout: &out})
			if err != nil || code != 0 || out.String() != want {
				t.Errorf("%d bytes were written to the input and %d were read (equal: %t); %d, %v", len(want), out.Len(), out.String() == want, code, err)
			}
		},
	},
	{
		name:     "StreamExecSeparatesStdoutAndStderr",
		text:     "Without TTY standard output and standard error are separate; with TTY both are written to Stdout. Output for a nil Writer is discarded.",
		contract: "Streams",
		cause:    "standard error is not requested, or a nil Writer is written to",
		needs:    []string{"StreamExecer", "Commands.PrintErr"},
		check: func(t *checkT) {
			id := t.running().ID
			var out, errs bytes.Buffer
			code, err := t.stream(t.Context(), id, t.suite.Commands.PrintErr("oops", 3), runtime.Streams{Stdout: &out, Stderr: &errs})
			if err != nil || code != 3 || out.Len() > 0 || errs.String() != "oops" {
				t.Errorf("without TTY: stdout %q, stderr %q, %d, %v", out.String(), errs.String(), code, err)
			}
			if code, err := t.stream(t.Context(), id, t.suite.Commands.PrintErr("oops", 3), runtime.Streams{}); err != nil || code != 3 {
				t.Errorf("without writers: %d, %v", code, err)
			}
			out.Reset()
			errs.Reset()
			code, err = t.stream(t.Context(), id, t.suite.Commands.PrintErr("oops", 3), runtime.Streams{Stdout: &out, Stderr: &errs, TTY: true})
			if err != nil || code != 3 || strings.TrimSpace(out.String()) != "oops" || errs.Len() > 0 {
				t.Errorf("with TTY: stdout %q, stderr %q, %d, %v", out.String(), errs.String(), code, err)
			}
		},
	},
	{
		name:     "StreamExecReturnsDocumentedErrors",
		text:     "When ctx is done the streams are closed immediately and ctx's error is returned; nothing is written after that. For a container that does not exist it returns ErrNotFound.",
		contract: "StreamExecer.StreamExec, Streams; errors of package runtime",
		cause:    "the call waits for the command, or for an input without end",
		needs:    []string{"StreamExecer", "Commands.Block"},
		check: func(t *checkT) {
			id := t.running().ID
			input, typing := io.Pipe() // never written to
			defer typing.Close()
			out := new(lateWriter)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
			defer cancel()
			begun := time.Now()
			if _, err := t.stream(ctx, id, t.suite.Commands.Block, runtime.Streams{Stdin: input, Stdout: out}); !errors.Is(err, context.Canceled) {
				t.Errorf("the error of a StreamExec whose context was canceled is %v", err)
			}
			out.over.Store(true)
			if took := time.Since(begun); took > t.suite.Timing.Timeout {
				t.Errorf("StreamExec returned %v after its context was canceled", took)
			}
			if _, err := t.stream(t.Context(), id+"-not", t.suite.Commands.Block, runtime.Streams{}); !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("the error of a StreamExec in a container that does not exist is %v", err)
			}
			if out.late.Load() {
				t.Error("output was written after StreamExec had returned")
			}
		},
	},
	{
		name:     "StreamExecResizesTerminal",
		text:     "The terminal of a command has the first size received from Resize, and then each later one; Resize need not be closed.",
		contract: "Streams.Resize",
		cause:    "rows and columns are swapped, or only the first size is passed on",
		needs:    []string{"StreamExecer", "Commands.Size"},
		check: func(t *checkT) {
			id := t.running().ID
			ctx, cancel := context.WithCancel(t.Context())
			out, sizes, done := new(lines), make(chan runtime.TerminalSize, 1), make(chan error, 1)
			go func() {
				_, err := as[runtime.StreamExecer](t).StreamExec(ctx, id, slices.Clone(t.suite.Commands.Size), runtime.Streams{Stdout: out, TTY: true, Resize: sizes})
				done <- err
			}()
			for _, size := range []runtime.TerminalSize{{Width: 77, Height: 33}, {Width: 178, Height: 44}} {
				sizes <- size
				want, printed := fmt.Sprintf("%d %d", size.Height, size.Width), false
				for begun := time.Now(); !printed && len(done) == 0 && time.Since(begun) < t.suite.Timing.Timeout/2; t.pause(t.suite.Timing.PollInterval) {
					printed = out.has(want)
				}
				if printed {
					continue
				}
				if len(done) == 0 { // a command that has exited is reported below
					t.Errorf("the terminal should have %d rows and %d columns; it printed %q", size.Height, size.Width, out.String())
				}
				break // StreamExec has returned and does not receive further sizes
			}
			cancel()
			switch err := <-done; {
			case errors.Is(err, runtime.ErrUnsupported):
				t.Skipf("StreamExec is not supported: %v", err)
			case !errors.Is(err, context.Canceled):
				t.Errorf("StreamExec returned %v; it printed %q", err, out.String())
			}
		},
	},
	{
		name:     "AttachReachesTheMainProcess",
		text:     "Attach connects to the main process: Stdin is its input, and its output is written to Stdout. When ctx is done, it returns ctx's error and the container continues; when the container exits, it returns nil.",
		contract: "Attacher.Attach",
		cause:    "a new process is started instead, or the container's input is closed with the first attached client",
		needs:    []string{"Attacher", "Containers.Repeats"},
		check: func(t *checkT) {
			c := named("repeats", t.suite.Containers.Repeats)
			c.Stdin = true
			pod := t.pod(v1.RestartPolicyNever, c)
			id := t.container(t.up(pod), "repeats").ID
			for _, word := range []string{"one", "two"} {
				input, typing := io.Pipe()
				ctx, cancel := context.WithCancel(t.Context())
				out := new(lines)
				done := make(chan error, 1)
				go func() { done <- as[runtime.Attacher](t).Attach(ctx, id, runtime.Streams{Stdin: input, Stdout: out}) }()
				go func() { _, _ = io.WriteString(typing, word+"\n") }()
				printed := false
				for begun := time.Now(); !printed && time.Since(begun) < t.suite.Timing.Timeout && len(done) == 0; t.pause(t.suite.Timing.PollInterval) {
					printed = out.has(word)
				}
				if !printed && len(done) == 0 {
					t.Errorf("%q was written to the container's input but is not in its output: %q", word, out.String())
				}
				if word == "two" { // the container exits while attached
					typing.Close()
					t.kill(pod, new(int64(1)))
					select {
					case err := <-done:
						if err != nil {
							t.Errorf("when the container exited, Attach returned %v", err)
						}
					case <-time.After(t.suite.Timing.Timeout):
						t.Error("Attach did not return after the container had exited")
					}
					cancel()
					return
				}
				cancel()
				err := <-done
				typing.Close()
				if errors.Is(err, runtime.ErrUnsupported) {
					t.Skipf("Attach is not supported: %v", err)
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the error of an Attach whose context was canceled is %v", err)
				}
				if s := t.look(pod.UID); !in(s, "repeats", runtime.ContainerRunning) {
					t.Fatalf("the container exited when Attach was canceled; the pod is\n%s", describe(s))
				}
			}
		},
	},
	{
		name:     "PortForwardConnects",
		text:     "PortForward connects to the port in the pod's network, copies until the pod closes the connection, and closes conn before it returns. For a port without a listener it returns an error, for an unknown pod ErrNotFound.",
		contract: "PortForwarder.PortForward",
		cause:    "conn is not closed, or the error of the remote end is dropped",
		needs:    []string{"PortForwarder", "Containers.Listens"},
		check: func(t *checkT) {
			const port, silent = 18573, 18574
			pod := t.pod(v1.RestartPolicyNever, named("greets", t.suite.Containers.Listens(port)))
			t.up(pod)
			rt := as[runtime.PortForwarder](t)
			forward := func(uid types.UID, port int32) (string, error) {
				ours, theirs := net.Pipe()
				defer ours.Close()
				done := make(chan error, 1)
				go func() { done <- rt.PortForward(t.Context(), uid, port, theirs) }()
				_ = ours.SetReadDeadline(time.Now().Add(t.suite.Timing.Timeout))
				got, readErr := io.ReadAll(ours) // until conn is closed
				err := <-done
				if errors.Is(readErr, os.ErrDeadlineExceeded) {
					t.Errorf("conn was not closed")
				}
				return string(got), err
			}
			var got string
			var err error
			for begun := time.Now(); got == "" && time.Since(begun) < t.suite.Timing.Timeout; t.pause(t.suite.Timing.PollInterval) { // until it listens
				if got, err = forward(pod.UID, port); errors.Is(err, runtime.ErrUnsupported) {
					t.Skipf("PortForward is not supported: %v", err)
				}
			}
			if got != "hello\n" {
				t.Errorf("read %q from the port, %v", got, err)
			}
			if _, err := forward(pod.UID, silent); err == nil {
				t.Error("PortForward to a port without a listener returned no error")
			}
			if _, err := forward(pod.UID+"-not", port); !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("the error of a PortForward to a pod that does not exist is %v", err)
			}
		},
	},
	{
		name:     "StreamServerReturnsURLs",
		text:     "A StreamServer returns absolute URLs for running containers and pods, a different one for each request, and ErrNotFound for those that do not exist.",
		contract: "StreamServer",
		cause:    "the URL is derived from the ID alone, so that it is not secret",
		needs:    []string{"StreamServer"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			id := t.container(t.up(pod), "long").ID
			rt := as[runtime.StreamServer](t)
			want := runtime.StreamOptions{Stdout: true}
			seen := map[string]bool{}
			for _, unknown := range []string{"", "-not"} {
				for what, ask := range map[string]func() (*url.URL, error){
					"ExecURL":   func() (*url.URL, error) { return rt.ExecURL(t.Context(), id+unknown, []string{"true"}, want) },
					"AttachURL": func() (*url.URL, error) { return rt.AttachURL(t.Context(), id+unknown, want) },
					"PortForwardURL": func() (*url.URL, error) {
						return rt.PortForwardURL(t.Context(), pod.UID+types.UID(unknown), []int32{80})
					},
				} {
					for range 2 {
						got, err := ask()
						switch {
						case errors.Is(err, runtime.ErrUnsupported):
							t.Skipf("%s is not supported: %v", what, err)
						case unknown != "":
							if !errors.Is(err, runtime.ErrNotFound) {
								t.Errorf("%s of a container or pod that does not exist returned %v, %v", what, got, err)
							}
						case err != nil || got == nil || !got.IsAbs() || got.Host == "":
							t.Errorf("%s returned %v, %v", what, got, err)
						case seen[got.String()]:
							t.Errorf("%s returned %v twice", what, got)
						default:
							seen[got.String()] = true
						}
					}
				}
			}
		},
	},
}

// stream calls StreamExec and skips the check if that is not supported. It does not
// wait for a command that does not receive the end of its input.
func (t *checkT) stream(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, t.suite.Timing.Timeout)
	defer cancel()
	code, err := as[runtime.StreamExecer](t).StreamExec(ctx, id, slices.Clone(cmd), s)
	if errors.Is(err, runtime.ErrUnsupported) {
		t.Skipf("StreamExec is not supported: %v", err)
	}
	return code, err
}

// A lateWriter counts the writes after the call has returned.
type lateWriter struct{ over, late atomic.Bool }

func (w *lateWriter) Write(p []byte) (int, error) {
	if w.over.Load() {
		w.late.Store(true)
	}
	return len(p), nil
}

// lines returns the text written so far.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) has(word string) bool { return strings.Contains(l.String(), word) }
