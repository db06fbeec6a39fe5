// E2enode runs Kubernetes' own suite of tests of the kubelet, test/e2e_node, against a real
// kubelet and against the complete node, examples/kubelet, one after the other on the same
// machine:
//
//	bash .ci/run e2e-node
//	go run ./test/e2enode --focus 'MirrorPod'
//
// Results accumulate in results.tsv; docs/e2e-node.md is the report of all of them. A test that
// passes with the kubelet and not with the agent needs an entry in differences.txt.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

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
	say := cli.NewPrinter(out)
	if !isolated() {
		code, err := isolate(ctx, out)
		if err != nil {
			say("failed to run in a mount namespace: %v", err)
			return 2
		}
		return code
	}
	h, err := readResults(o.results)
	if err != nil {
		say("failed to read earlier results: %v", err)
		return 2
	}
	for _, s := range o.subjects {
		for _, m := range modesOf(slices.Collect(maps.Keys(h.tests)), o.focus) {
			run, latest, err := runSubject(ctx, s, m, o, out, say)
			h.tests.merge(s, run)
			if latest != "" {
				h.latest = latest
			}
			if err := h.write(o.results); err != nil {
				say("failed to write the results: %v", err)
				return 2
			}
			if err != nil {
				say("failed to run the tests against the %s: %v", s, err)
				return 2
			}
		}
	}
	r := newReport(h, notMeasurable(), differences())
	if err := os.WriteFile(o.report, []byte(r.markdown()), 0o644); err != nil {
		say("failed to write the report: %v", err)
		return 2
	}
	fmt.Fprint(out, r.summary())
	if len(r.unexplained) > 0 {
		return 1
	}
	return 0
}
