package operators

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// A row is a package and its results, nil for a side that was not run.
type row struct {
	name          string
	control, ours *results
}

// differences returns a line for each test whose result differs, and the number of those that
// pass with the control only.
func (r row) differences() (lines []string, worse int) {
	if r.control == nil || r.ours == nil {
		return nil, 0
	}
	for _, name := range slices.Sorted(maps.Keys(r.control.specs)) {
		is, was := r.ours.specs[name], r.control.specs[name]
		if is == "" {
			is = "missing"
		}
		if is != was {
			lines = append(lines, fmt.Sprintf("%s: %s: control %s, ours %s", r.name, name, was, is))
		}
		if was == "passed" && is != "passed" {
			worse++
		}
	}
	return lines, worse
}

// report writes a table in Markdown and the differences. It returns an error if a test passes
// with the control only.
func report(out io.Writer, rows []row) error {
	_, _ = fmt.Fprintln(out, "| package | control: passed, time, memory | ours: passed, time, memory | pass with the control only |\n|---|---|---|---|")
	var all []string
	total := 0
	for _, r := range rows {
		lines, worse := r.differences()
		all, total = append(all, lines...), total+worse
		_, _ = fmt.Fprintf(out, "| %s | %s | %s | %d |\n", r.name, r.control, r.ours, worse)
	}
	for _, line := range all {
		_, _ = fmt.Fprintln(out, line)
	}
	if total > 0 {
		return fmt.Errorf("%d tests pass with the control only", total)
	}
	return nil
}

// String returns a cell of the table.
func (r *results) String() string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%d of %d, %s, %d MB", r.passed(), r.ran(), r.took.Round(100*time.Millisecond), r.memory/1e6)
}
