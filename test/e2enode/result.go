package e2enode

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
)

// A state is the outcome of a test.
type state string

const (
	notRun  state = "-"
	passed  state = "passed"
	failed  state = "FAILED"
	skipped state = "skipped" // by the test itself
)

// A result is a test and its outcome with one program.
type result struct {
	name  string
	is    state
	why   string // empty if it passed
	took  time.Duration
	again bool // the first run failed, and this is the second one

	container string // see ginkgo.Spec
}

// evaluate returns the results of all tests of the suite, also of those that were not selected. It
// returns an error if the suite could not be started.
func evaluate(specs []ginkgo.Spec) ([]result, error) {
	var results []result
	for _, spec := range specs {
		switch {
		case spec.Node == "It":
			r := result{name: spec.Name, is: outcome(spec), took: spec.Took, container: spec.Container}
			if r.is == failed || r.is == skipped {
				r.why = cmp.Or(spec.Why, spec.State)
			}
			results = append(results, r)
		case spec.State != "passed" && strings.HasSuffix(spec.Node, "BeforeSuite"):
			return nil, fmt.Errorf("%s: %s", spec.Node, cmp.Or(spec.Why, spec.State))
		}
	}
	return results, nil
}

// Messages of ginkgo.
const (
	suiteTimeout  = "A suite timeout occurred"
	earlierFailed = "Spec skipped because an earlier spec in an ordered container failed"
)

// outcome returns the state of a test. Ginkgo skips tests that are not selected without a message,
// and interrupts tests when the time of the suite has passed.
func outcome(spec ginkgo.Spec) state {
	if spec.Why == suiteTimeout {
		return notRun
	}
	switch spec.State {
	case "passed":
		return passed
	case "skipped":
		if spec.Why == "" {
			return notRun
		}
		return skipped
	case "pending", "interrupted":
		return notRun
	default:
		return failed
	}
}

// inconclusive reports whether a test has to be run again: it failed, or it was not run because
// an earlier one did.
func (r result) inconclusive() bool {
	return r.is == failed || r.why == earlierFailed
}

// maxTogether is the maximum number of tests of a container that are run again together.
const maxTogether = 6

// inconclusive returns the names of these tests, and of the others of small containers: tests of
// an ordered container cannot be run without the others.
func inconclusive(results []result) []string {
	tests, again := map[string]int{}, map[string]bool{}
	for _, r := range results {
		tests[r.container]++
		again[r.container] = again[r.container] || r.inconclusive()
	}
	var names []string
	for _, r := range results {
		if r.inconclusive() || again[r.container] && tests[r.container] <= maxTogether && r.is != notRun {
			names = append(names, r.name)
		}
	}
	return names
}

// exactly returns a pattern of these names. Ginkgo prepends the name of the suite.
func exactly(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, regexp.QuoteMeta(name))
	}
	return " (" + strings.Join(quoted, "|") + ")$"
}

// retried returns the results with those of the second run of inconclusive tests.
func retried(first, second []result) []result {
	byName := map[string]result{}
	for _, r := range second {
		byName[r.name] = r
	}
	first = slices.Clone(first)
	for i, r := range first {
		if now := byName[r.name]; r.inconclusive() && now.is != notRun && now.name != "" {
			now.again = true
			first[i] = now
		}
	}
	return first
}
