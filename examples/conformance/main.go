// Conformance runs Kubernetes' node conformance tests against the reference agent, as
// the only node of a real cluster on a real containerd:
//
//	bash .ci/run conformance
//	go run ./examples/conformance --focus 'Probing container'
//
// docs/node-conformance.md is the report of such a run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
)

func main() {
	o, err := parseFlags(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := conformance(ctx, o, os.Stdout)
	stop()
	os.Exit(code)
}

// conformance does what o says, and returns the exit code.
func conformance(ctx context.Context, o options, out io.Writer) int {
	say := sayer(out)
	r := report{on: time.Now(), focus: o.focus}
	err := lab.Program(ctx, out, func(t testing.TB) error {
		w := newWorld(t, o, say)
		if err := w.nodeReady(ctx); err != nil {
			return err
		}
		r.containerd = w.daemon.Version
		var err error
		r.results, err = w.suite(ctx, o, say)
		r.took = time.Since(r.on)
		return err
	})
	if err != nil {
		say("it could not be done: %v", err)
		return 2
	}
	table(out, r.results)
	if o.report != "" {
		if err := os.WriteFile(o.report, []byte(r.markdown()), 0o644); err != nil {
			say("the report could not be written: %v", err)
		}
	}
	n := count(r.results)
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", n[passed], n[failed], n[skipped])
	switch {
	case n[failed] > 0:
		return 1
	case n[passed] == 0:
		say("no test was run: --focus and --skip leave none")
		return 2
	}
	return 0
}

// sayer returns what prints a line with the time since the beginning.
func sayer(out io.Writer) func(string, ...any) {
	var mu sync.Mutex
	began := time.Now()
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%7s  %s\n", time.Since(began).Round(100*time.Millisecond), fmt.Sprintf(format, args...))
	}
}
