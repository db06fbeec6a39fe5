package e2enode

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// A history is the contents of the file of results.
type history struct {
	latest string // date and circumstances of the latest run
	tests  results
}

// noRun is the latest run of a file with names only.
const noRun = "not run"

// results are the latest results of all tests, of each program, by name.
type results map[string]map[subject]result

// merge replaces the results of a program by those of a run. Results of tests that were not run
// are kept.
func (all results) merge(s subject, run []result) {
	for _, r := range run {
		if all[r.name] == nil {
			all[r.name] = map[subject]result{}
		}
		if r.is != notRun {
			all[r.name][s] = r
		}
	}
}

// of returns the results of a program.
func (all results) of(s subject) (list []result) {
	for name, by := range all {
		if r, ok := by[s]; ok {
			list = append(list, r)
		} else {
			list = append(list, result{name: name, is: notRun})
		}
	}
	return list
}

// names returns the names of all tests.
func (h history) names() []string { return slices.Collect(maps.Keys(h.tests)) }

// The file of results begins with a line "# " and the latest run. It has a line for each test: for
// each program state, seconds and message, and the name, all separated by tabs. An asterisk at the
// state means that it is of a second run.
var subjects = []subject{kubelet, agent}

func (h history) write(file string) error {
	var lines []string
	for name, of := range h.tests {
		var b strings.Builder
		for _, s := range subjects {
			r, ok := of[s]
			if !ok {
				r.is = notRun
			}
			mark := ""
			if r.again {
				mark = "*"
			}
			fmt.Fprintf(&b, "%s%s\t%d\t%s\t", r.is, mark, int(r.took.Round(time.Second).Seconds()), oneLine(r.why))
		}
		lines = append(lines, b.String()+name+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return os.WriteFile(file, []byte("# "+h.latest+"\n"+strings.Join(lines, "")), 0o644)
}

func nameOf(line string) string { return line[strings.LastIndexByte(line, '\t')+1:] }

// oneLine returns a message in a form that has no tabs and is not long.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200]) + " …"
	}
	return text
}

// readResults returns no results if the file does not exist.
func readResults(file string) (history, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return history{tests: results{}}, nil
	} else if err != nil {
		return history{}, err
	}
	return parseResults(file, string(text))
}

func parseResults(file, text string) (history, error) {
	all := results{}
	first, rest, _ := strings.Cut(text, "\n")
	latest, ok := strings.CutPrefix(first, "# ")
	if !ok {
		return history{}, fmt.Errorf("%s: the first line does not name the latest run", file)
	}
	for line := range strings.Lines(rest) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3*len(subjects)+1 {
			return history{}, fmt.Errorf("%s: %d fields in %q", file, len(fields), line)
		}
		name := fields[len(fields)-1]
		all[name] = map[subject]result{}
		for i, s := range subjects {
			var seconds int
			if _, err := fmt.Sscan(fields[3*i+1], &seconds); err != nil {
				return history{}, fmt.Errorf("%s: seconds in %q: %w", file, line, err)
			}
			is, again := strings.CutSuffix(fields[3*i], "*")
			if state(is) != notRun {
				all[name][s] = result{name: name, is: state(is), took: time.Duration(seconds) * time.Second, why: fields[3*i+2], again: again}
			}
		}
	}
	return history{latest, all}, nil
}
