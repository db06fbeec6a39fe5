// Oracle tests a kubelet against what Kubernetes documents; see docs/oracle.md.
//
//	go run ./test/oracle/cmd --help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubeparts/kubeparts/test/oracle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := oracle.Run(ctx, os.Args[1:], os.Stdout); {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, oracle.ErrViolated):
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
		os.Exit(2)
	}
}
