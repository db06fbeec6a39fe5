package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubeparts/kubeparts/sim"
)

// Check replays a recording, frames as lines of JSON ([ReadJSON]), and fails t if the agent of this program violates
// one of the invariants; the failure has what happened before. Without invariants, it fails t if the agent diverges.
// It is what tests call that [Recording.AsTest] writes. It must not be called in a bubble of testing/synctest.
func Check(t testing.TB, frames string, invariants ...string) Result {
	t.Helper()
	return CheckWith(t, frames, Options{Invariants: invariants})
}

// CheckWith is Check with Options, for example of an agent that is configured as the recorded one.
func CheckWith(t testing.TB, frames string, opts Options) Result {
	t.Helper()
	r, err := ReadJSON(strings.NewReader(frames))
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(t.Context(), r, opts)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case result.Divergence != nil:
		t.Errorf("The agent diverges from the recording:\n%v", result.Divergence)
	case len(result.Violations) > 0:
		t.Error(result.Explain())
	}
	return result
}

// traceContext is the number of entries that are printed before a violation.
const traceContext = 25

// Explain returns the first violation with the description of its invariant and what
// happened before, as text of several lines; empty if there is none.
func (r Result) Explain() string {
	if len(r.Violations) == 0 {
		return ""
	}
	first := r.Violations[0]
	var b strings.Builder
	fmt.Fprintf(&b, "violated invariant %s", first.Invariant)
	for _, inv := range Invariants() {
		if inv.Name == first.Invariant {
			fmt.Fprintf(&b, ": %s", inv.Description)
		}
	}
	fmt.Fprintf(&b, "\n%s\n\nBefore:\n", first)
	end := len(r.Trace)
	for i, e := range r.Trace {
		if e.Kind == sim.InvariantViolated && e.Violation.Invariant == first.Invariant {
			end = i + 1
			break
		}
	}
	for _, e := range r.Trace[max(0, end-traceContext):end] {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}
