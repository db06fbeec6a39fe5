package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// A Command is a subcommand of the program of this module.
type Command struct {
	Name    string
	Summary string // its line in the table of the subcommands

	run func(ctx context.Context, args []string, out io.Writer) int // returns the exit code
}

// NewCommand returns a Command. parse parses its flags; run is called with the result and returns the exit code.
func NewCommand[O any](name, summary string, parse func(args []string, out io.Writer) (O, error), run func(context.Context, O, io.Writer) int) Command {
	return Command{name, summary, func(ctx context.Context, args []string, out io.Writer) int {
		o, err := parse(args, out)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return 0
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return 2
		}
		return run(ctx, o, out)
	}}
}

const help = `Test runs the complete node (examples/kubelet) with real components, and reports the results.

  go run ./test COMMAND [flags]
  go run ./test COMMAND --help

Commands:
`

// Run runs the command that the first argument names with the other arguments, and returns the exit code:
// 2 if there is no such command. The context of the command is done on SIGINT and SIGTERM. Without arguments,
// and with --help, it writes the table of the commands to out.
func Run(commands []Command, args []string, out io.Writer) int {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(out, help)
		for _, c := range commands {
			fmt.Fprintf(out, "  %-12s %s\n", c.Name, c.Summary)
		}
		return 0
	}
	i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == args[0] })
	if i < 0 {
		fmt.Fprintf(os.Stderr, "no command %q; see --help\n", args[0])
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return commands[i].run(ctx, args[1:], out)
}
