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

// streamPromises are those of [runtime.StreamExecer], [runtime.Attacher],
// [runtime.PortForwarder] and [runtime.StreamServer].
var streamPromises = []promise{
	{
		name:     "StreamExecStreams",
		text:     "StreamExec runs a command in the container to its end, writes what it prints to the caller's Stdout, and returns its exit code.",
		contract: "StreamExecer.StreamExec",
		cause:    "the exit code that comes after the streams is not read",
		needs:    []string{"StreamExecer", "Commands.Print", "Commands.Block"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			id := t.container(t.up(pod), "long").ID
			rt := as[runtime.StreamExecer](t)
			for _, want := range []int32{0, 3} {
				var out bytes.Buffer
				code, err := rt.StreamExec(t.Context(), id, t.suite.Commands.Print("hello", want), runtime.Streams{Stdout: &out})
				if errors.Is(err, runtime.ErrUnsupported) {
					t.Skipf("StreamExec is not supported (its caller would do without): %v", err)
				}
				if err != nil || code != want || out.String() != "hello" {
					t.Errorf("StreamExec of a command that prints hello and exits with %d: %q, %d, %v", want, out.String(), code, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if code, err := rt.StreamExec(ctx, id, t.suite.Commands.Block, runtime.Streams{}); err == nil {
				t.Errorf("StreamExec beyond its context: %d, no error", code)
			}
			if took := time.Since(begun); took > t.suite.Timing.Timeout {
				t.Errorf("a command whose context ended after 0.3 s took %v", took)
			}
			if code, err := rt.StreamExec(t.Context(), id+"-not", t.suite.Commands.Print("hello", 0), runtime.Streams{}); err == nil {
				t.Errorf("StreamExec in a container that does not exist: %d, no error", code)
			}
		},
	},
	{
		name:     "StreamExecPassesInput",
		text:     "StreamExec passes Stdin on until it ends, which the command sees as the end of its input, and all of the output before it returns.",
		contract: "Streams.Stdin; StreamExecer.StreamExec",
		cause:    "the end of the input is not passed on, or the call returns before the output has been read",
		needs:    []string{"StreamExecer", "Commands.Echo"},
		check: func(t *trial) {
			id := t.running().ID
			want := strings.Repeat("0123456789abcdef", 1<<12) // more than a pipe holds
			var out bytes.Buffer
			code, err := t.stream(t.Context(), id, t.suite.Commands.Echo, runtime.Streams{Stdin: strings.NewReader(want), Stdout: &out})
			if err != nil || code != 0 || out.String() != want {
				t.Errorf("of %d bytes of input %d came back (%t); %d, %v", len(want), out.Len(), out.String() == want, code, err)
			}
		},
	},
	{
		name:     "StreamExecKeepsOutputsApart",
		text:     "Without TTY standard output and standard error are apart; with it all comes out of Stdout. A nil Writer throws away what is written there.",
		contract: "Streams",
		cause:    "standard error is not asked for, or a nil Writer is written to",
		needs:    []string{"StreamExecer", "Commands.PrintErr"},
		check: func(t *trial) {
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
		name:     "StreamExecErrorsAreKnown",
		text:     "When ctx ends the streams are cut at once and ctx's error is returned, and nothing is written after that. A container that does not exist is ErrNotFound.",
		contract: "StreamExecer.StreamExec, Streams; errors of package runtime",
		cause:    "the call waits for the command, or for an input that never ends",
		needs:    []string{"StreamExecer", "Commands.Block"},
		check: func(t *trial) {
			id := t.running().ID
			input, typing := io.Pipe() // of which nothing ever comes
			defer typing.Close()
			out := new(lateWriter)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
			defer cancel()
			begun := time.Now()
			if _, err := t.stream(ctx, id, t.suite.Commands.Block, runtime.Streams{Stdin: input, Stdout: out}); !errors.Is(err, context.Canceled) {
				t.Errorf("the error of a StreamExec whose context was cancelled is %v", err)
			}
			out.over.Store(true)
			if took := time.Since(begun); took > t.suite.Timing.Timeout {
				t.Errorf("it came after %v", took)
			}
			if _, err := t.stream(t.Context(), id+"-not", t.suite.Commands.Block, runtime.Streams{}); !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("the error of a StreamExec in a container that does not exist is %v", err)
			}
			if out.late.Load() {
				t.Error("something was written after StreamExec had returned")
			}
		},
	},
	{
		name:     "StreamExecResizes",
		text:     "A command with a terminal has the size that comes first out of Resize, and each that comes later; Resize need not be closed.",
		contract: "Streams.Resize",
		cause:    "sizes are passed on with rows and columns the wrong way round, or the first one only",
		needs:    []string{"StreamExecer", "Commands.Size"},
		check: func(t *trial) {
			id := t.running().ID
			ctx, cancel := context.WithCancel(t.Context())
			out, sizes, done := new(lines), make(chan runtime.TerminalSize, 1), make(chan error, 1)
			go func() {
				_, err := as[runtime.StreamExecer](t).StreamExec(ctx, id, slices.Clone(t.suite.Commands.Size), runtime.Streams{Stdout: out, TTY: true, Resize: sizes})
				done <- err
			}()
			for _, size := range []runtime.TerminalSize{{Width: 77, Height: 33}, {Width: 178, Height: 44}} {
				sizes <- size
				want, heard := fmt.Sprintf("%d %d", size.Height, size.Width), false
				for begun := time.Now(); !heard && len(done) == 0 && time.Since(begun) < t.suite.Timing.Timeout/2; t.pause(t.suite.Timing.PollInterval) {
					heard = out.has(want)
				}
				if heard {
					continue
				}
				if len(done) == 0 { // what ended has an error, or should not have ended
					t.Errorf("the terminal was to have %d rows and %d columns; its sizes were %q", size.Height, size.Width, out.String())
				}
				break // nobody may be there to read the next size
			}
			cancel()
			switch err := <-done; {
			case errors.Is(err, runtime.ErrUnsupported):
				t.Skipf("StreamExec is not supported (its caller would do without): %v", err)
			case !errors.Is(err, context.Canceled):
				t.Errorf("StreamExec returned %v; it printed %q", err, out.String())
			}
		},
	},
	{
		name:     "AttachReachesTheMainProcess",
		text:     "Attach connects to the main process: what is written to Stdin reaches it, what it prints comes out of Stdout. When ctx ends, ctx's error is returned and the container goes on; when the container ends, nil is.",
		contract: "Attacher.Attach",
		cause:    "a new process is started instead, or the container's input ends with the first who attaches",
		needs:    []string{"Attacher", "Containers.Repeats"},
		check: func(t *trial) {
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
				heard := false
				for begun := time.Now(); !heard && time.Since(begun) < t.suite.Timing.Timeout && len(done) == 0; t.pause(t.suite.Timing.PollInterval) {
					heard = out.has(word)
				}
				if !heard && len(done) == 0 {
					t.Errorf("%q was written to the container's input and did not come out again; %q did", word, out.String())
				}
				if word == "two" { // the container ends first
					typing.Close()
					t.kill(pod, new(int64(1)))
					select {
					case err := <-done:
						if err != nil {
							t.Errorf("Attach to a container that has ended returned %v", err)
						}
					case <-time.After(t.suite.Timing.Timeout):
						t.Error("Attach goes on after the end of the container")
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
					t.Errorf("the error of an Attach whose context was cancelled is %v", err)
				}
				if s := t.look(pod.UID); !in(s, "repeats", runtime.ContainerRunning) {
					t.Fatalf("the container has ended with the one who was attached; the pod is\n%s", describe(s))
				}
			}
		},
	},
	{
		name:     "PortForwardConnects",
		text:     "PortForward connects to the port in the pod's network, copies until the pod's end has nothing more to say, and closes conn before it returns. A port where nobody listens is an error, an unknown pod ErrNotFound.",
		contract: "PortForwarder.PortForward",
		cause:    "conn is left open, or the error of the far end is dropped",
		needs:    []string{"PortForwarder", "Containers.Listens"},
		check: func(t *trial) {
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
				got, readErr := io.ReadAll(ours) // to its end: conn is closed
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
				t.Errorf("%q came out of the port, %v", got, err)
			}
			if _, err := forward(pod.UID, silent); err == nil {
				t.Error("PortForward to a port where nobody listens is no error")
			}
			if _, err := forward(pod.UID+"-not", port); !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("the error of a PortForward to a pod that does not exist is %v", err)
			}
		},
	},
	{
		name:     "StreamURLsAreGiven",
		text:     "A StreamServer gives absolute URLs for containers and pods that run, another for each request, and ErrNotFound for those that do not exist.",
		contract: "StreamServer",
		cause:    "the URL is made from the ID alone, so that it is no secret",
		needs:    []string{"StreamServer"},
		check: func(t *trial) {
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
								t.Errorf("%s of what does not exist returned %v, %v", what, got, err)
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

// stream runs a command with streams, if the runtime can after all. One that does
// not see the end of its input is not waited for.
func (t *trial) stream(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, t.suite.Timing.Timeout)
	defer cancel()
	code, err := as[runtime.StreamExecer](t).StreamExec(ctx, id, slices.Clone(cmd), s)
	if errors.Is(err, runtime.ErrUnsupported) {
		t.Skipf("StreamExec is not supported (its caller would do without): %v", err)
	}
	return code, err
}

// A lateWriter notices what is written when all should be over.
type lateWriter struct{ over, late atomic.Bool }

func (w *lateWriter) Write(p []byte) (int, error) {
	if w.over.Load() {
		w.late.Store(true)
	}
	return len(p), nil
}

// lines are what was written so far.
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
