package e2enode

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

//go:embed differences.txt
var differencesText string

//go:embed not-measurable.txt
var notMeasurableText string

//go:embed not-emulated.txt
var notEmulatedText string

// differences are the explained differences.
func differences() []reasons.Reason { return reasons.Parse(differencesText) }

// notMeasurable are the tests that are not run. Labels are parts of the names of tests.
func notMeasurable() []reasons.Reason { return reasons.Parse(notMeasurableText) }

// notEmulated are the tests that are not run in the machine of modern.
func notEmulated() []reasons.Reason { return reasons.Parse(notEmulatedText) }

// excluded are the tests that are not run on the machine of these options.
func (o options) excluded() []reasons.Reason {
	if o.emulated != "" {
		return notEmulated()
	}
	return notMeasurable()
}

// unusedReasons describes the reasons that apply to no test of the suite, and those of differences
// that no longer exist.
func unusedReasons(tests []string, r report, notMeasurable, explained []reasons.Reason) (unused []string) {
	for _, reason := range slices.Concat(notMeasurable, explained) {
		if !slices.ContainsFunc(tests, func(name string) bool { return strings.Contains(name, reason.Text) }) {
			unused = append(unused, "unused: no test has "+reason.Text+" in its name")
		}
	}
	for _, reason := range explained {
		if !slices.ContainsFunc(r.explained, func(d difference) bool { return strings.Contains(d.name, reason.Text) }) {
			unused = append(unused, "unused: "+reason.Text+" is no difference any more")
		}
	}
	return unused
}
