// Hollow measures simulated nodes: hundreds of them with thousands of pods run in one process
// against a real API server (package kube/fakenode), and the program reports their memory,
// processor time and calls. examples/hollow only runs the nodes.
//
//	go run ./test/hollow --lab                       # with a control plane of its own
//	go run ./test/hollow --kubeconfig ~/.kube/config # as nodes of a cluster
//
// docs/benchmarks.md has the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	o, err := parseFlags(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hollow:", err)
		stop()
		os.Exit(1)
	}
}
