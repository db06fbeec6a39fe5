package conformance

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

// suite runs the tests and returns their results. A failed test is not an error.
func (w *world) suite(ctx context.Context, o options, say func(string, ...any)) ([]result, error) {
	leave := o.kind.reasons()
	if o.all {
		leave = nil
	}
	skip := reasons.Patterns(leave)
	if o.skip != "" {
		skip = append(skip, o.skip)
	}
	suite := ginkgo.Suite{
		Program: filepath.Join(o.tools, ginkgoName), Binary: filepath.Join(o.tools, o.kind.binary),
		Args: []string{"--kubeconfig=" + w.control.Kubeconfig, "--provider=skeleton", "--num-nodes=1", "--kubelet-root-dir=" + w.root},
		Logs: cmp.Or(o.logs, w.Dir), Timeout: 3 * time.Hour, Printf: say,
	}
	specs, err := suite.Run(ctx, ginkgo.Selection{Name: "suite", Focus: o.focus, Skip: skip, Procs: o.procs})
	if err != nil {
		return nil, err
	}
	return evaluate(specs, o.selected, leave), nil
}

// selection returns whether the name of a test matches --focus and not --skip, as ginkgo does.
func selection(focus, skip string) (func(name string) bool, error) {
	run, err := regexp.Compile(focus)
	if err != nil {
		return nil, fmt.Errorf("--focus: %w", err)
	}
	leave, err := regexp.Compile(skip)
	if err != nil {
		return nil, fmt.Errorf("--skip: %w", err)
	}
	return func(name string) bool { return run.MatchString(name) && (skip == "" || !leave.MatchString(name)) }, nil
}

// evaluate returns the results of the tests that ran, the excluded ones among the selected ones, and
// the failures of other nodes of the suite.
func evaluate(specs []ginkgo.Spec, selected func(name string) bool, excluded []reasons.Reason) []result {
	var results []result
	for _, spec := range specs {
		r := result{name: spec.Name, took: spec.Took, why: spec.Why}
		switch {
		case spec.Node != "It":
			if spec.State == "passed" {
				continue
			}
			r.name, r.is = "["+spec.Node+"] "+r.name, failed
		case spec.State == "passed":
			r.is = passed
		case spec.State == "skipped" && r.why != "":
			r.is = skipped // by the test itself
		case spec.State == "skipped" || spec.State == "pending":
			by := reasons.Find(excluded, r.name)
			if by == nil || !selected(r.name) {
				continue
			}
			r.is, r.why = excludedState, by.Why
		default:
			r.is, r.why = failed, cmp.Or(r.why, spec.State)
		}
		results = append(results, r)
	}
	return results
}
