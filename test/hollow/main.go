// Hollow runs hundreds of simulated nodes with thousands of pods in one process
// against a real API server: what a scheduler, a controller or an API server is to
// be tried with at scale. Nothing is executed; the nodes register, renew their
// leases, and their pods live as they are declared to (package kube/fakenode).
//
//	go run ./test/hollow --lab                       # with a control plane of its own
//	go run ./test/hollow --kubeconfig ~/.kube/config # as nodes of a cluster
//
// It prints what a node costs here, in memory, processor time and calls.
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
