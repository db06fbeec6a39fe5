//go:build unix

package compare

import (
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// reasonsText lists the reasons for differences: a line that begins with "# " and the
// reason, followed by regular expressions, one per line, that match the differences with
// this reason as difference.String returns them. A pattern should name the field, and the
// pod if others do not have the reason. A reason that begins with "Sometimes: " is kept
// although no difference has it: it depends on time.
//
//go:embed reasons.txt
var reasonsText string

const sometimes = "Sometimes: "

// A reason explains the differences that match a pattern.
type reason struct {
	why       string
	pattern   *regexp.Regexp
	sometimes bool
}

func parseReasons(text string) ([]reason, error) {
	var all []reason
	var why string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "# "); ok {
			why = comment
			continue
		}
		if line == "" {
			continue
		}
		if why == "" {
			return nil, fmt.Errorf("reasons.txt:%d: no reason precedes the pattern", number)
		}
		pattern, err := regexp.Compile(line)
		if err != nil {
			return nil, fmt.Errorf("reasons.txt:%d: %w", number, err)
		}
		text, timed := strings.CutPrefix(why, sometimes)
		all = append(all, reason{text, pattern, timed})
	}
	return all, nil
}

// A result groups differences by their reasons.
type result struct {
	reasons     []reason
	explained   [][]difference // by reason
	unexplained []difference
	unused      []reason // not those that apply sometimes
}

// explain finds the reason of each difference: the first whose pattern matches.
func explain(all []difference, reasons []reason) result {
	r := result{reasons: reasons, explained: make([][]difference, len(reasons))}
next:
	for _, d := range all {
		for i, reason := range reasons {
			if reason.pattern.MatchString(d.String()) {
				r.explained[i] = append(r.explained[i], d)
				continue next
			}
		}
		r.unexplained = append(r.unexplained, d)
	}
	for i, reason := range reasons {
		if len(r.explained[i]) == 0 && !reason.sometimes {
			r.unused = append(r.unused, reason)
		}
	}
	return r
}

// count returns the number of differences.
func (r result) count() int {
	n := len(r.unexplained)
	for _, group := range r.explained {
		n += len(group)
	}
	return n
}

// print prints the unexplained differences, and with all the others as well.
func (r result) print(out io.Writer, all bool) {
	for _, g := range r.byReason() {
		if all && len(g.found) > 0 {
			fmt.Fprintf(out, "%s\n", g.why)
			for _, d := range g.found {
				fmt.Fprintf(out, "    %s\n", d)
			}
		}
	}
	if len(r.unexplained) > 0 {
		fmt.Fprintln(out, "unexplained:")
	}
	for _, d := range r.unexplained {
		fmt.Fprintf(out, "    %s\n", d)
	}
}
