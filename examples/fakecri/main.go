// Fakecri serves a CRI runtime that executes nothing on a unix socket, for any client of
// the CRI, including kubelets. Containers behave as a file specifies.
//
// Try it, from the root of the repository; it needs no root and no cluster:
//
//	$ go run ./examples/fakecri --listen unix:///tmp/fakecri.sock --behaviors examples/fakecri/node.txt -v
//	… and in another shell, with crictl:
//	$ crictl -r unix:///tmp/fakecri.sock info
//	$ crictl -r unix:///tmp/fakecri.sock pull busybox
//	$ crictl -r unix:///tmp/fakecri.sock run container.json pod.json
//	… or with the reference agent, whose pods then run here:
//	$ go run ./examples/agent --manifests=examples/agent/pods --runtime=unix:///tmp/fakecri.sock \
//	    --root=/tmp/fakecri-agent
//	Ctrl-C stops it and discards all pods.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fakecri:", err)
		os.Exit(1)
	}
}

const usage = `fakecri is a CRI runtime in memory, in which containers behave as a file specifies.

  fakecri --listen unix:///tmp/fakecri.sock [--behaviors FILE]

The behavior of a container is specified by its name or its image in the file, or
by an annotation of its pod:

  fakecri.kubeparts.io/behavior: "exit=1@1m"

Without one it runs until it is stopped. Every image can be pulled. All pods are
discarded when the program terminates.

Flags:
`

// run serves until ctx is done.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fakecri", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are reported once, without usage
	flags.Usage = func() {}
	var (
		listen    = flags.String("listen", "unix:///tmp/fakecri.sock", "`address` to serve the CRI at, a unix socket")
		streams   = flags.String("streams", "127.0.0.1:0", "TCP `address` of exec, attach and port-forward; port 0 is any")
		behaviors = flags.String("behaviors", "", "`file` with the behavior of containers and images, and faults; see examples/fakecri/node.txt")
		seed      = flags.Uint64("seed", 1, "`number` that IDs and random faults are derived from")
		logs      = flags.Bool("logs", true, "write the logs of containers to the paths that the client specifies")
		endpoints = flags.Bool("endpoints", true, "listen on the endpoints of containers at 127.0.0.1")
		verbose   = flags.Bool("v", false, "print each call that modifies something or fails, and the first of each other method")
	)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	var script fake.Script
	if *behaviors != "" {
		data, err := os.ReadFile(*behaviors)
		if err != nil {
			return err
		}
		if script, err = fake.ParseScript(string(data)); err != nil {
			return fmt.Errorf("%s: %w", *behaviors, err)
		}
	}
	cfg, err := fakecri.ScriptConfig(script, *seed)
	if err != nil {
		return fmt.Errorf("%s: %w", *behaviors, err)
	}
	cfg.WriteLogs, cfg.Listen = *logs, *endpoints
	cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	rt, err := fakecri.New(cfg)
	if err != nil {
		return err
	}

	listener, err := serve.Listen(ctx, *listen)
	if err != nil {
		return err
	}
	serving := serve.Config{Listener: listener, Runtime: rt, Images: rt, Streams: rt, StreamAddr: *streams}
	if *verbose {
		serving.Called = (&callLog{out: out, printed: map[string]bool{}}).called
	}
	server, err := serve.New(serving)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(out, "fakecri serves CRI v1 at unix://%s, until Ctrl-C\n", listener.Addr())
	err = server.Run(ctx)
	remove(rt)
	return err
}

// remove closes the endpoints of containers.
func remove(rt *fakecri.Runtime) {
	for _, s := range rt.Sandboxes("") {
		_ = rt.RemovePodSandbox(context.Background(), s.ID) // the program terminates anyway
	}
}

// A callLog prints calls. Clients poll read-only methods: of each, the first call and
// failing ones are printed.
type callLog struct {
	mu      sync.Mutex // guards the fields below
	out     io.Writer
	printed map[string]bool
}

func (l *callLog) called(c serve.CallInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Err == nil && readOnly(c.Method) {
		if l.printed[c.Method] {
			return
		}
		l.printed[c.Method] = true
	}
	line := fmt.Sprintf("%s %s %v", time.Now().Format("15:04:05.000"), c.Method, c.Duration.Round(time.Microsecond))
	if c.Err != nil {
		line += ": " + c.Err.Error()
	}
	fmt.Fprintln(l.out, line)
}

// readOnly reports whether a method modifies nothing.
func readOnly(method string) bool {
	for _, part := range []string{"Version", "Status", "Stats", "Info", "RuntimeConfig"} {
		if strings.HasSuffix(method, part) && method != "UpdateRuntimeConfig" {
			return true
		}
	}
	return strings.HasPrefix(method, "List") || strings.HasPrefix(method, "Stream")
}
