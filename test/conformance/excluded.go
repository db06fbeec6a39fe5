package main

import (
	_ "embed"
	"regexp"
	"strings"
)

// excludedText lists parts of the names of excluded tests, each after a line with the reason,
// which begins with "# ".
//
//go:embed excluded.txt
var excludedText string

// An exclusion excludes the tests whose names contain text.
type exclusion struct{ text, why string }

func excluded() []exclusion {
	var all []exclusion
	var why string
	for line := range strings.Lines(excludedText) {
		line = strings.TrimSpace(line)
		if reason, ok := strings.CutPrefix(line, "# "); ok {
			why = reason
		} else if line != "" {
			all = append(all, exclusion{line, why})
		}
	}
	return all
}

// patterns returns the exclusions as regular expressions.
func patterns(all []exclusion) []string {
	var out []string
	for _, e := range all {
		out = append(out, regexp.QuoteMeta(e.text))
	}
	return out
}

// find returns the exclusion of a test, nil if there is none.
func find(all []exclusion, name string) *exclusion {
	for i, e := range all {
		if strings.Contains(name, e.text) {
			return &all[i]
		}
	}
	return nil
}
