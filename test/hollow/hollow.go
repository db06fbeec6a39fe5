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
