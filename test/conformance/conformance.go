package conformance

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("conformance", "Kubernetes' tests of nodes in clusters, and of dynamic resource allocation", parseFlags, conformance)
}

// conformance runs the tests and returns the exit code.
func conformance(ctx context.Context, o options, out io.Writer) int {
	say := cli.NewPrinter(out)
	if o.kind.machineRoot && !isolate.Isolated() {
		code, err := isolate.Run(ctx, isolate.Config{Args: os.Args[1:], Out: out})
		if err != nil {
			say("failed to run the tests with mounts of their own: %v", err)
			return 2
		}
		return code
	}
	r := report{kind: o.kind, on: time.Now(), focus: o.focus}
	err := lab.Program(ctx, out, func(t testing.TB) error {
		w := newWorld(t, o, say)
		if err := w.node.UntilReady(ctx, w.api, nodeName); err != nil {
			return err
		}
		r.containerd = w.daemon.Version
		var err error
		r.results, err = w.suite(ctx, o, say)
		r.took = time.Since(r.on)
		return err
	})
	if err != nil {
		say("failed to run the tests: %v", err)
		return 2
	}
	table(out, r.results)
	if err := markdown.Write(o.report, r.markdown(), say); err != nil {
		say("%v", err)
	}
	n := count(r.results)
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", n[passed], n[failed], n[skipped])
	switch {
	case n[failed] > 0:
		return 1
	case n[passed] == 0:
		say("no test matches --focus and --skip")
		return 2
	}
	return 0
}
