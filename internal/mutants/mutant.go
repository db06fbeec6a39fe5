package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Mutant is a bug that can be planted in the code.
type Mutant struct {
	Name       string   // of its file, without .txt
	File       string   // the changed file, relative to the module, with slashes
	Invariants []string // at least one must be violated
	Tests      []string // if In is agent, at least one must fail
	In         string   // the package whose seeds or tests must catch it: sim, sim/simcri or agent
	Why        string   // one sentence: why it is a bug

	Find, Replace string
}

// Load reads the mutants of a directory, sorted by name.
func Load(dir fs.FS) ([]Mutant, error) {
	names, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	var out []Mutant
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("mutants: %w", err)
		}
		m, err := Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("mutants: %s: %w", name, err)
		}
		m.Name = strings.TrimSuffix(path.Base(name), ".txt")
		out = append(out, m)
	}
	return out, nil
}

// Parse parses the text of a mutant. It does not set Name.
func Parse(text string) (Mutant, error) {
	m := Mutant{In: "sim"}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	head, rest, found := strings.Cut(text, "\n--- find\n")
	if !found {
		return m, errors.New(`no line "--- find"`)
	}
	m.Find, m.Replace, found = strings.Cut(rest, "--- replace\n")
	if !found {
		return m, errors.New(`no line "--- replace"`)
	}
	m.Find, m.Replace = strings.TrimSuffix(m.Find, "\n"), strings.TrimSuffix(m.Replace, "\n") // the text may be part of a line
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "":
		case "file":
			m.File = value
		case "invariant":
			for name := range strings.SplitSeq(value, ",") {
				m.Invariants = append(m.Invariants, strings.TrimSpace(name))
			}
		case "test":
			for test := range strings.SplitSeq(value, ",") {
				m.Tests = append(m.Tests, strings.TrimSpace(test))
			}
		case "in":
			m.In = value
		case "why":
			m.Why = value
		default:
			return m, fmt.Errorf("line %q: must be file, in, invariant, test or why", strings.TrimSpace(line))
		}
	}
	switch {
	case m.File == "":
		return m, errors.New("no file")
	case m.In != "sim" && m.In != "sim/simcri" && m.In != "agent":
		return m, fmt.Errorf("no seeds in %q", m.In)
	case m.In == "agent" && (len(m.Tests) == 0 || len(m.Invariants) > 0):
		return m, errors.New("no test, or an invariant")
	case m.In != "agent" && (len(m.Invariants) == 0 || slices.Contains(m.Invariants, "") || len(m.Tests) > 0):
		return m, errors.New("no invariant, or a test")
	case m.Why == "":
		return m, errors.New("no why")
	case strings.TrimSpace(m.Find) == "" || m.Find == m.Replace:
		return m, errors.New("changes nothing")
	}
	return m, nil
}

// Apply returns the source of its file with the bug. It returns an error unless the
// text occurs exactly once; then the mutant must be adapted to the code.
func (m Mutant) Apply(source string) (string, error) {
	if n := strings.Count(source, m.Find); n != 1 {
		return "", fmt.Errorf("mutants: %s: its text occurs in %s %d times, not once: adapt the mutant to the code\n%s", m.Name, m.File, n, m.Find)
	}
	return strings.Replace(source, m.Find, m.Replace, 1), nil
}
