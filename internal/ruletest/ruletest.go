// Package ruletest holds tests to lists of rules: each rule of how a node behaves has
// a test that says its number, in the name of a case or in a comment, or else a reason
// why it has none. A reason that holds no longer is a failure as well.
package ruletest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Span is rules of one kind whose numbers follow each other: vol-1 … vol-81.
type Span struct {
	Kind     string
	From, To int
}

// Files returns the tests that the patterns name, those that list rules left out.
func Files(t testing.TB, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(path string) bool { return strings.HasSuffix(path, "rules_test.go") })
}

// Named returns the rules that files say, and for each which of them say it.
func Named(t testing.TB, files ...string) map[string][]string {
	t.Helper()
	named := map[string][]string{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range In(string(text)) {
			if !slices.Contains(named[rule], path) {
				named[rule] = append(named[rule], path)
			}
		}
	}
	return named
}

// Check fails t for each rule of spans that is neither named nor without a test for a
// reason, or both.
func Check(t testing.TB, named map[string][]string, without map[string]string, spans ...Span) {
	t.Helper()
	for _, s := range spans {
		for n := s.From; n <= s.To; n++ {
			rule := fmt.Sprintf("%s-%d", s.Kind, n)
			switch why, ok := without[rule]; {
			case ok && named[rule] != nil:
				t.Errorf("a reason that holds no longer: %s (%s) is named by %s", rule, why, named[rule])
			case !ok && named[rule] == nil:
				t.Errorf("no test names %s", rule)
			}
		}
	}
}

// In returns what of a text has the form of a rule's number: a word, a hyphen, digits.
// A regular expression takes a minute for all files under the race detector.
func In(text string) (rules []string) {
	const digits = "0123456789"
	const letters = digits + "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for at, c := range []byte(text) {
		if c != '-' {
			continue
		}
		before, after := text[:at], text[at+1:]
		from := at
		for from > 0 && strings.IndexByte(letters, before[from-1]) >= 0 {
			from--
		}
		number := after[:len(after)-len(strings.TrimLeft(after, digits))]
		whole := len(number) == len(after) || strings.IndexByte(letters, after[len(number)]) < 0
		if from < at && number != "" && whole {
			rules = append(rules, before[from:]+"-"+number)
		}
	}
	return rules
}
