package chaos

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("chaos", "the node with real components that are killed, stopped and filled", parseFlags, chaos)
}

// chaos runs o and returns the exit code.
func chaos(ctx context.Context, o options, out io.Writer) int {
	switch {
	case o.list:
		list(out)
		return 0
	case o.draw > 0:
		d := o.drawer()
		fmt.Fprintln(out, d.first())
		for range o.draw {
			fmt.Fprintln(out, d.next())
		}
		return 0
	}
	say := cli.NewPrinter(out)
	say("seed %d: --seed %d --pods %d with the same faults repeats these rounds", o.seed, o.seed, o.pods)
	res, err := run(ctx, o, say)
	if o.logs != "" {
		say("the logs of the node and containerd are in %s", o.logs)
	}
	if len(res.outcomes) > 0 {
		if err := markdown.Write(o.report, res.markdown(), say); err != nil {
			say("%v", err)
		}
	}
	res.summary(out)
	broken := res.checker.broken()
	for _, v := range broken {
		fmt.Fprintf(out, "VIOLATION at %s of %s\n", v.at.Format(time.TimeOnly), v)
	}
	switch {
	case err != nil:
		say("failed to run: %v", err)
		return 2
	case len(broken) > 0:
		say("%d violations; try --seed %d again with the --faults of the round only", len(broken), o.seed)
		return 1
	case res.cut:
		say("interrupted; no invariant was violated so far")
		return 2
	}
	say("no invariant was violated")
	return 0
}

func list(out io.Writer) {
	fmt.Fprintln(out, "Faults:")
	for _, k := range kinds {
		fmt.Fprintf(out, "  %-22s %s\n", k.name, k.text)
	}
	fmt.Fprintln(out, "\nInvariants:")
	for _, l := range invariants() {
		fmt.Fprintf(out, "  %-24s %s\n", l.name, l.description)
	}
}
