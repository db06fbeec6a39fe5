// Chaos runs the reference agent as a node of a real cluster, on a real containerd,
// with real faults, and checks the laws of the simulation on what really happens:
//
//	go run ./test/chaos
//	go run ./test/chaos --once --pods 10
//
// docs/reliability.md is the report of such a run.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

func main() { os.Exit(cli.Run("chaos", parseFlags, chaos)) }

// chaos does what o says, and returns the exit code.
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
	say("seed %d: the same rounds come with --seed %d --pods %d and the same faults", o.seed, o.seed, o.pods)
	res, err := run(ctx, o, say)
	if o.logs != "" {
		say("what the agent and containerd have said is in %s", o.logs)
	}
	if o.report != "" && len(res.outcomes) > 0 {
		if err := os.WriteFile(o.report, []byte(res.markdown()), 0o644); err != nil {
			say("the report could not be written: %v", err)
		} else {
			say("the report is in %s", o.report)
		}
	}
	res.summary(out)
	broken := res.judge.broken()
	for _, v := range broken {
		fmt.Fprintf(out, "VIOLATION at %s of %s\n", v.at.Format(time.TimeOnly), v)
	}
	switch {
	case err != nil:
		say("it could not be done: %v", err)
		return 2
	case len(broken) > 0:
		say("%d violations; try --seed %d again, with --faults of the round alone", len(broken), o.seed)
		return 1
	case res.cut:
		say("interrupted; no law was broken so far")
		return 2
	}
	say("no law was broken")
	return 0
}

func list(out io.Writer) {
	fmt.Fprintln(out, "Faults:")
	for _, k := range kinds {
		fmt.Fprintf(out, "  %-22s %s\n", k.name, k.says)
	}
	fmt.Fprintln(out, "\nLaws:")
	for _, l := range laws {
		fmt.Fprintf(out, "  %-24s %s\n", l.name, l.says)
	}
}
