// Package reasons reads lists of tests with reasons: parts of the names of tests, one a line,
// each after a line with the reason, which begins with "# ".
package reasons

import (
	"regexp"
	"strings"
)

// A Reason applies to the tests whose names contain Text.
type Reason struct{ Text, Why string }

// Parse returns the reasons of a list. Why is empty if no reason precedes a line.
func Parse(list string) []Reason {
	var all []Reason
	var why string
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if reason, ok := strings.CutPrefix(line, "# "); ok {
			why = reason
		} else if line != "" {
			all = append(all, Reason{line, why})
		}
	}
	return all
}

// Patterns returns the texts as regular expressions.
func Patterns(all []Reason) []string {
	var out []string
	for _, r := range all {
		out = append(out, regexp.QuoteMeta(r.Text))
	}
	return out
}

// Find returns the first reason that applies to a test, nil if there is none.
func Find(all []Reason, name string) *Reason {
	for i, r := range all {
		if strings.Contains(name, r.Text) {
			return &all[i]
		}
	}
	return nil
}
