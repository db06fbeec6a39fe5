package mutants

import (
	"errors"
	"fmt"
	"io/fs"
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
func Load(dir fs.FS) (all []Mutant, err error) {
	err = eachText(dir, func(name, text string) error {
		m, err := Parse(text)
		m.Name = strings.TrimSuffix(name, ".txt")
		all = append(all, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Parse parses the text of a mutant. It does not set Name.
func Parse(text string) (Mutant, error) {
	m := Mutant{In: "sim"}
	var err error
	m.Find, m.Replace, err = parseChange(strings.ReplaceAll(text, "\r\n", "\n"), "file, in, invariant, test or why", func(key, value string) bool {
		switch key {
		case "file":
			m.File = value
		case "invariant":
			m.Invariants = append(m.Invariants, list(value)...)
		case "test":
			m.Tests = append(m.Tests, list(value)...)
		case "in":
			m.In = value
		case "why":
			m.Why = value
		default:
			return false
		}
		return true
	})
	switch {
	case err != nil:
	case m.File == "":
		err = errors.New("no file")
	case m.In != "sim" && m.In != "sim/simcri" && m.In != "agent":
		err = fmt.Errorf("no seeds in %q", m.In)
	case m.In == "agent" && (len(m.Tests) == 0 || len(m.Invariants) > 0):
		err = errors.New("no test, or an invariant")
	case m.In != "agent" && (len(m.Invariants) == 0 || slices.Contains(m.Invariants, "") || len(m.Tests) > 0):
		err = errors.New("no invariant, or a test")
	case m.Why == "":
		err = errors.New("no why")
	}
	return m, err
}

// Apply returns the source of its file with the bug. It returns an error unless the
// text occurs exactly once; then the mutant must be adapted to the code.
func (m Mutant) Apply(source string) (string, error) {
	if n := strings.Count(source, m.Find); n != 1 {
		return "", fmt.Errorf("mutants: %s: its text occurs in %s %d times, not once: adapt the mutant to the code\n%s", m.Name, m.File, n, m.Find)
	}
	return strings.Replace(source, m.Find, m.Replace, 1), nil
}
