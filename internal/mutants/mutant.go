package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Mutant is a bug to be planted.
type Mutant struct {
	Name  string   // of its file, without .txt
	File  string   // which it changes, relative to the module, with slashes
	Laws  []string // one of which has to catch it
	Tests []string // with In: agent, one of which has to fail
	In    string   // the package, below the module, whose seeds or tests have to: sim, sim/simcri, or agent
	Why   string   // it is a bug: a sentence

	Find, Replace string
}

// Load reads the mutants of a directory, by name.
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

// Parse reads a mutant, whose name is not in its text.
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
	m.Find, m.Replace = strings.TrimSuffix(m.Find, "\n"), strings.TrimSuffix(m.Replace, "\n") // it may be part of a line
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "":
		case "file":
			m.File = value
		case "law":
			for law := range strings.SplitSeq(value, ",") {
				m.Laws = append(m.Laws, strings.TrimSpace(law))
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
			return m, fmt.Errorf("line %q: neither file, in, law, test nor why", strings.TrimSpace(line))
		}
	}
	switch {
	case m.File == "":
		return m, errors.New("it names no file")
	case m.In != "sim" && m.In != "sim/simcri" && m.In != "agent":
		return m, fmt.Errorf("there are no seeds in %q", m.In)
	case m.In == "agent" && (len(m.Tests) == 0 || len(m.Laws) > 0):
		return m, errors.New("it names no test, or a law")
	case m.In != "agent" && (len(m.Laws) == 0 || slices.Contains(m.Laws, "") || len(m.Tests) > 0):
		return m, errors.New("it names no law, or a test")
	case m.Why == "":
		return m, errors.New("it does not say why")
	case strings.TrimSpace(m.Find) == "" || m.Find == m.Replace:
		return m, errors.New("it changes nothing")
	}
	return m, nil
}

// Apply plants the bug in the source of its file. It is an error if the text is
// not there exactly once: then the code has changed, and so must the mutant.
func (m Mutant) Apply(source string) (string, error) {
	if n := strings.Count(source, m.Find); n != 1 {
		return "", fmt.Errorf("mutants: %s: its text is in %s %d times, not once: has the code changed?\n%s", m.Name, m.File, n, m.Find)
	}
	return strings.Replace(source, m.Find, m.Replace, 1), nil
}
