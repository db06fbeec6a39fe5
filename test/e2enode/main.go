// E2enode runs Kubernetes' own suite of tests of the kubelet, test/e2e_node, against a real
// kubelet and against the complete node, examples/kubelet, one after the other on the same
// machine:
//
//	bash .ci/run e2e-node
//	go run ./test/e2enode --focus 'MirrorPod'
//
// Results accumulate in a file in the cache of .ci/run; docs/e2e-node.md is the report of all of them. A test that
// passes with the kubelet and not with the agent needs an entry in differences.txt.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

func main() {
	if run, ok := standIns[filepath.Base(os.Args[0])]; ok { // called by the suite
		os.Exit(exitCode(run(os.Args[1:])))
	}
	os.Exit(cli.Run("e2enode", parseFlags, e2enode))
}

// e2enode runs the tests and returns the exit code.
func e2enode(ctx context.Context, o options, out io.Writer) int {
	if isolated() {
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
	if err := os.WriteFile(o.report, []byte(r.markdown()), 0o644); err != nil {
		say("failed to write the report: %v", err)
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
