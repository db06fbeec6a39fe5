package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A state is what became of a test.
type state string

const (
	passed  state = "passed"
	failed  state = "FAILED"
	skipped state = "skipped"  // by itself
	left    state = "left out" // see excluded.txt
)

// A result is a test and what became of it.
type result struct {
	name string
	is   state
	took time.Duration
	why  string // unless it passed
}

func count(results []result) map[state]int {
	n := map[state]int{}
	for _, r := range results {
		n[r.is]++
	}
	return n
}

// sorted has what failed at the end.
func sorted(results []result) []result {
	rank := []state{passed, left, skipped, failed}
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
