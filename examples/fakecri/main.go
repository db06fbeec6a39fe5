// Fakecri is a CRI runtime that runs nothing, on a unix socket: any client of the
// CRI can run against it, a kubelet too. Pods live as a file says.
//
// Try it, from the root of the repository; it needs no root and no cluster:
//
//	$ go run ./examples/fakecri --listen unix:///tmp/fakecri.sock --behaviours examples/fakecri/node.yaml -v
//	… and in another shell, with crictl:
//	$ crictl -r unix:///tmp/fakecri.sock info
//	$ crictl -r unix:///tmp/fakecri.sock pull busybox
//	$ crictl -r unix:///tmp/fakecri.sock run container.json pod.json
//	… or with the reference agent, whose pods then live here:
//	$ go run ./examples/kubelet --manifests=examples/agent/pods --runtime=unix:///tmp/fakecri.sock \
//	    --root=/tmp/fakecri-agent --pod-logs-dir=/tmp/fakecri-agent/logs
//	Ctrl-C ends it, and all that it pretended to run.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fakecri:", err)
		os.Exit(1)
	}
}

const usage = `fakecri is a CRI runtime in memory: pods live as a file says, and nothing runs.

  fakecri --listen unix:///tmp/fakecri.sock [--behaviours FILE.yaml]

A container does what the file says of its name or its image, or what an
annotation of its pod says:

  fakecri.kubeparts.io/behaviour: "{runFor: 1m, exitCode: 1}"

Without that it runs until it is stopped. Every image can be pulled. The end of
the program is the end of all pods.

Flags:
`

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fakecri", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is told once, without the usage around it
	flags.Usage = func() {}
	var (
		listen     = flags.String("listen", "unix:///tmp/fakecri.sock", "`address` to serve the CRI at, a unix socket")
		streams    = flags.String("streams", "127.0.0.1:0", "TCP `address` of exec, attach and port-forward; port 0 is any")
		behaviours = flags.String("behaviours", "", "YAML `file` of what containers and images do, and what goes wrong; see examples/fakecri/node.yaml")
		seed       = flags.Uint64("seed", 1, "`number` that IDs and the luck of faults come from")
		logs       = flags.Bool("logs", true, "write the logs of containers where the client wants them")
		endpoints  = flags.Bool("endpoints", true, "let the endpoints of containers listen on 127.0.0.1")
		verbose    = flags.Bool("v", false, "print each call that changes something or fails, and the first of each that asks")
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
	var script fakecri.Script
	if *behaviours != "" {
		data, err := os.ReadFile(*behaviours)
		if err != nil {
			return err
		}
		if script, err = fakecri.ParseScript(data); err != nil {
			return fmt.Errorf("%s: %w", *behaviours, err)
		}
	}
	cfg := script.Config(*seed)
	cfg.WriteLogs, cfg.Listen = *logs, *endpoints
	cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	fake, err := fakecri.New(cfg)
	if err != nil {
		return err
	}

	listener, err := serve.Listen(ctx, *listen)
	if err != nil {
		return err
	}
	serving := serve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: fake, StreamAddr: *streams}
	if *verbose {
		serving.Called = (&teller{out: out, told: map[string]bool{}}).called
	}
	server, err := serve.New(serving)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(out, "fakecri serves CRI v1 at unix://%s, until Ctrl-C\n", listener.Addr())
	err = server.Run(ctx)
	remove(fake)
	return err
}

// remove ends what the containers still do, such as to listen.
func remove(fake *fakecri.Runtime) {
	for _, s := range fake.Sandboxes("") {
		_ = fake.RemovePodSandbox(context.Background(), s.ID) // the program ends anyway
	}
}

// A teller prints calls. Clients ask again and again how things are: of each
// such call the first is told, and those that fail.
type teller struct {
	mu   sync.Mutex // guards the fields below
	out  io.Writer
	told map[string]bool
}

func (t *teller) called(c serve.CallInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Err == nil && asks(c.Method) {
		if t.told[c.Method] {
			return
		}
		t.told[c.Method] = true
	}
	line := fmt.Sprintf("%s %s %v", time.Now().Format("15:04:05.000"), c.Method, c.Duration.Round(time.Microsecond))
	if c.Err != nil {
		line += ": " + c.Err.Error()
	}
	fmt.Fprintln(t.out, line)
}

// asks reports whether a method changes nothing.
func asks(method string) bool {
	for _, part := range []string{"Version", "Status", "Stats", "Info", "RuntimeConfig"} {
		if strings.HasSuffix(method, part) && method != "UpdateRuntimeConfig" {
			return true
		}
	}
	return strings.HasPrefix(method, "List") || strings.HasPrefix(method, "Stream")
}
