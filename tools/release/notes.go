package main

import (
	"fmt"
	"regexp"
	"strings"
)

var heading = regexp.MustCompile(`(?m)^## \[([^\]]+)\](?: - (.*))?$`)

// releaseNotes returns the section of a version of CHANGELOG.md. If final, its date must be set and no
// change may be in the section Unreleased.
func releaseNotes(changelog, version string, final bool) (string, error) {
	number := strings.TrimPrefix(version, "v")
	found := heading.FindAllStringSubmatchIndex(changelog, -1)
	notes := ""
	for i, at := range found {
		end := len(changelog)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name, date, text := changelog[at[2]:at[3]], "", strings.TrimSpace(changelog[at[1]:end])
		if at[4] >= 0 {
			date = changelog[at[4]:at[5]]
		}
		switch {
		case name == "Unreleased" && text != "" && final:
			return "", fmt.Errorf("CHANGELOG.md: section [Unreleased] is not empty; move its lines into [%s]", number)
		case name == number:
			if final && !regexp.MustCompile(`^\d{4}-\d\d-\d\d$`).MatchString(date) {
				return "", fmt.Errorf("CHANGELOG.md: section [%s] has no date but %q; write \"## [%s] - YYYY-MM-DD\"", number, date, number)
			}
			notes = text
		}
	}
	if notes == "" {
		return "", fmt.Errorf("CHANGELOG.md: no section [%s], or it is empty; give [Unreleased] this version and the date", number)
	}
	return notes + "\n", nil
}
