package conformance

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A state is the outcome of a test.
type state string

const (
	passed        state = "passed"
	failed        state = "FAILED"
	skipped       state = "skipped"  // by the test
	excludedState state = "excluded" // see excluded.txt
)

// A result is a test and its outcome.
type result struct {
	name string
	is   state
	took time.Duration
	why  string // empty if it passed
}

func count(results []result) map[state]int {
	n := map[state]int{}
	for _, r := range results {
		n[r.is]++
	}
	return n
}

// sorted returns the results by outcome, failed tests last.
func sorted(results []result) []result {
	rank := []state{passed, excludedState, skipped, failed}
	return slices.SortedFunc(slices.Values(results), func(a, b result) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.is), slices.Index(rank, b.is)), strings.Compare(a.name, b.name))
	})
}

func table(out io.Writer, results []result) {
	for _, r := range sorted(results) {
		fmt.Fprintf(out, "%-8s %6s  %s\n", r.is, r.took.Round(time.Second), r.name)
		if r.is != passed {
			fmt.Fprintf(out, "%17s%s\n", "", r.why)
		}
	}
}
