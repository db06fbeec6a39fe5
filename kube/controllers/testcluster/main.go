package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const usage = `testcluster is a Kubernetes cluster for tests: an API server in memory, with the real
controllers and scheduler and simulated nodes if wanted. Nothing is executed.

In place of kube-apiserver and etcd in an envtest:

  export KUBEBUILDER_ASSETS=$(testcluster assets)
  go test ./...

A cluster for kubectl, and for tests in any language:

  testcluster up --nodes=3 --controllers

Commands:
  assets   create the entries kube-apiserver, etcd and kubectl, and print their directory
  up       run a cluster until it is interrupted
  help     print this text; "testcluster COMMAND --help" prints the flags of a command
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	err := run(ctx, name, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// run runs the program under one of its names.
func run(ctx context.Context, name string, args []string, out, log io.Writer) error {
	switch name {
	case "kube-apiserver":
		return serveAPI(ctx, args, out, log)
	case "etcd":
		return serveEtcd(ctx, args, out)
	case "kubectl":
		return kubectl(ctx, args)
	}
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "assets":
		return assets(args, out)
	case "up":
		return up(ctx, args, out, log)
	case "help", "-h", "-help", "--help":
		_, err := io.WriteString(out, usage)
		return err
	}
	return fmt.Errorf("unknown command %q: want assets, up or help", command)
}
