package e2enode

import (
	"context"
	"fmt"
	"io"

	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("e2enode", "Kubernetes' tests of kubelets, on a kubelet and on the node", parseFlags, e2enode)
}

// StandIn runs this program under another name: that of a program that the suite calls. It returns the exit code,
// and whether name is one of these names.
func StandIn(name string, args []string) (code int, ok bool) {
	run, ok := standIns[name]
	if !ok {
		return 0, false
	}
	return exitCode(run(args)), true
}

// e2enode runs the tests and returns the exit code.
func e2enode(ctx context.Context, o options, out io.Writer) int {
	if o.merge != "" {
		return merge(o.merge, reasons.Parse(emulatedDifferences), out)
	}
	if isolate.Isolated() {
		return runLane(ctx, o, out)
	}
	say := cli.NewPrinter(out)
	h, err := readResults(o.results)
	if err != nil {
		say("failed to read earlier results: %v", err)
		return 2
	}
	jobs := jobsOf(h.tests, o)
	for i, j := range jobs {
		say("job %d: %d tests with the %s", i, len(j.tests), j.subject)
	}
	err = runJobs(ctx, jobs, o.lanes, o, out, func(j job, found history) error {
		h.tests.merge(j.subject, found.tests.of(j.subject))
		if found.latest != noRun {
			h.latest = found.latest
		}
		return h.write(o.results)
	})
	if err != nil {
		say("failed to run the tests: %v", err)
		return 2
	}
	r := newReport(h, notMeasurable(), differences())
	r.elsewhere = elsewhere(emulated(), notMeasurable())
	if err := markdown.Write(o.report, r.markdown(), say); err != nil {
		say("%v", err)
		return 2
	}
	fmt.Fprint(out, r.summary())
	unused := unusedReasons(h.names(), r, notMeasurable(), differences())
	for _, problem := range unused {
		fmt.Fprintln(out, problem)
	}
	if len(r.unexplained)+len(unused) > 0 {
		return 1
	}
	return 0
}
