package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// eachText calls parse with the name and text of each file of a directory whose name ends with .txt, in
// the order of the names.
func eachText(dir fs.FS, parse func(name, text string) error) error {
	names, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return fmt.Errorf("mutants: %w", err)
		}
		if err := parse(name, string(text)); err != nil {
			return fmt.Errorf("mutants: %s: %w", name, err)
		}
	}
	return nil
}

// parseChange parses the text of one mutant: lines "key: value", which it passes to set, "--- find" and the
// code, "--- replace" and the other code. keys is for the error if set returns false.
func parseChange(text, keys string, set func(key, value string) bool) (find, replace string, err error) {
	head, rest, found := strings.Cut(text, "\n--- find\n")
	if !found {
		return "", "", errors.New(`no line "--- find"`)
	}
	if find, replace, found = strings.Cut(rest, "--- replace\n"); !found {
		return "", "", errors.New(`no line "--- replace"`)
	}
	find, replace = strings.TrimSuffix(find, "\n"), strings.TrimSuffix(replace, "\n") // may be a part of a line
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key != "" && !set(key, strings.TrimSpace(value)) {
			return "", "", fmt.Errorf("line %q: must be %s", strings.TrimSpace(line), keys)
		}
	}
	if strings.TrimSpace(find) == "" || find == replace {
		return "", "", errors.New("changes nothing")
	}
	return find, replace, nil
}

// list splits a list with commas.
func list(value string) (items []string) {
	for item := range strings.SplitSeq(value, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return items
}
