// Package hollow measures simulated nodes: hundreds of them with thousands of pods run in one process
// against a real API server (package kube/fakenode), and the program reports their memory,
// processor time and calls. examples/hollow only runs the nodes.
//
//	go run ./test hollow --lab                       # with a control plane of its own
//	go run ./test hollow --kubeconfig ~/.kube/config # as nodes of a cluster
//
// docs/benchmarks.md has the results.
package hollow

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("hollow", "the costs of hundreds of simulated nodes on an API server", parseFlags, hollowNodes)
}

// hollowNodes runs and measures the nodes, and returns the exit code.
func hollowNodes(ctx context.Context, o options, out io.Writer) int {
	if err := run(ctx, o, out); err != nil {
		fmt.Fprintln(os.Stderr, "hollow:", err)
		return 1
	}
	return 0
}
