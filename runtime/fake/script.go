package fake

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Behaviors maps names of containers, in any pod, and of images to the behavior of
// containers. A container name takes precedence over an image.
type Behaviors struct {
	Containers map[string]Behavior
	Images     map[string]Behavior
}

// A Script specifies the containers, images and faults of a runtime in text:
//
//	container web log="hello %d";every=1s http=8080@5s memory=64Mi
//	container crash exit=1@2s crashes=3
//	image busybox pull=2s layer=4Mi;name=base
//	run busybox exit=0@1m
//	fault StartContainer container=web probability=0.1 error="no shim";code=Unavailable
//
// A container line has the behavior of the containers with a name, a run line of those with
// an image. An image line has an [Image]: layer=SIZE;name=NAME, pull=2s, error=TEXT, fails=2,
// absent, auth=USER:PASSWORD, user=1000, present, pinned. A fault line has a [Rule]: the method
// or *, pod=UID, container=NAME, image=NAME, after=1, count=2, probability=0.1, delay=1s, lost,
// hang, stale=5s, error=TEXT;code=CODE. An indented line continues the line before. Empty lines
// and lines that begin with # are ignored.
type Script struct {
	Behaviors
	Images map[string]Image
	Faults []Rule // for each call the first matching rule applies
}

// ParseScript parses a script. It returns all errors, with their line numbers.
func ParseScript(text string) (Script, error) {
	if len(text) > maxText {
		return Script{}, fmt.Errorf("fake: the script is longer than %d bytes", maxText)
	}
	var s Script
	var failed error
	for number, line := range statements(text) {
		if err := s.parseLine(line); err != nil {
			failed = errors.Join(failed, fmt.Errorf("fake: line %d: %w", number, err))
		}
	}
	if failed != nil {
		return Script{}, failed
	}
	return s, nil
}

// statements yields the lines with those that continue them, by the number of the first.
func statements(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		first, statement := 0, ""
		for i, line := range strings.Split(text, "\n") {
			trimmed := strings.TrimSpace(line)
			switch {
			case trimmed == "" || trimmed[0] == '#':
			case statement != "" && (line[0] == ' ' || line[0] == '\t'):
				statement += " " + trimmed
			default:
				if statement != "" && !yield(first, statement) {
					return
				}
				first, statement = i+1, trimmed
			}
		}
		if statement != "" {
			yield(first, statement)
		}
	}
}

func (s *Script) parseLine(line string) error {
	if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsSpace(r) && r != ' ' && r != '\t' }) {
		return errors.New("white space other than blanks and tabs")
	}
	words, err := split(line, separators)
	if err != nil || len(words) == 0 {
		return err
	}
	if words[0] == "fault" {
		rule, err := ruleOf(words[1:])
		s.Faults = append(s.Faults, rule)
		return err
	}
	if len(words) < 2 {
		return fmt.Errorf("%q: want a name", line)
	}
	switch name := words[1]; words[0] {
	case "container":
		return put(&s.Containers, name, words[2:], behaviorOf)
	case "run":
		return put(&s.Behaviors.Images, name, words[2:], behaviorOf)
	case "image":
		return put(&s.Images, name, words[2:], imageOf)
	}
	return fmt.Errorf("%q: want container, image, run or fault", words[0])
}

func put[V Behavior | Image](m *map[string]V, name string, words []string, parse func([]string) (V, error)) error {
	v, err := parse(words)
	if _, ok := (*m)[name]; ok && err == nil {
		err = errors.New("specified twice")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
	return nil
}

// String returns the text of s.
func (s Script) String() string {
	var b strings.Builder
	write(&b, "container", s.Containers)
	write(&b, "image", s.Images)
	write(&b, "run", s.Behaviors.Images)
	for _, r := range s.Faults {
		fmt.Fprintln(&b, "fault", r)
	}
	return b.String()
}

func write[V fmt.Stringer](b *strings.Builder, kind string, m map[string]V) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintln(b, strings.TrimSpace(kind+" "+name+" "+m[name].String()))
	}
}
