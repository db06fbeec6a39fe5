package fake

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An option is one option of the text of a T: name[=value][@time][;option…].
type option[T any] struct {
	name string

	// format returns the texts of the option after its name, one for each occurrence.
	format func(v *T) []string
	parse  func(v *T, a argument) error
	many   bool // it may occur several times
}

// An argument is the text of an option after its name.
type argument struct {
	value    string
	hasValue bool
	at       time.Duration
	hasAt    bool
	options  []string
}

// maxText is the maximum length of a text in bytes.
const maxText = 1 << 20

// split returns the parts of text between separators outside quotes, without empty ones.
func split(text, separators string) ([]string, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("longer than %d bytes", maxText)
	}
	var parts []string
	start := 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted, err := strconv.QuotedPrefix(text[i:])
			if err != nil {
				return nil, fmt.Errorf("invalid quoted text %.80s", text[i:])
			}
			i += len(quoted) - 1
		case strings.IndexByte(separators, text[i]) >= 0:
			if start < i {
				parts = append(parts, text[start:i])
			}
			start = i + 1
		}
	}
	if start < len(text) {
		parts = append(parts, text[start:])
	}
	return parts, nil
}

// cut splits one option into its name and argument.
func cut(text string) (name string, a argument, err error) {
	parts, err := split(text, ";")
	if err != nil || len(parts) == 0 {
		return text, a, errors.Join(err, fmt.Errorf("no name"))
	}
	head := parts[0]
	a.options = parts[1:]
	end := strings.IndexAny(head, "=@")
	if end < 0 {
		return head, a, nil
	}
	name, rest := head[:end], head[end:]
	at := ""
	if rest[0] == '=' {
		rest, a.hasValue = rest[1:], true
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return name, a, err
			}
			a.value, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
			if rest = rest[len(quoted):]; rest != "" && rest[0] != '@' {
				return name, a, fmt.Errorf("unexpected %q after the quoted text", rest)
			}
			at, a.hasAt = strings.CutPrefix(rest, "@")
		} else {
			a.value, at, a.hasAt = strings.Cut(rest, "@")
		}
	} else {
		at, a.hasAt = rest[1:], true
	}
	if a.hasAt {
		a.at, err = parseDuration(at)
	}
	return name, a, err
}

// parse sets v from options, each of which must be in the table. It returns the names.
func parse[T any](v *T, table []option[T], options []string) (given []string, err error) {
	for _, text := range options {
		name, a, err := cut(text)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", text, err)
		}
		i := slices.IndexFunc(table, func(o option[T]) bool { return o.name == name })
		switch {
		case i < 0:
			err = fmt.Errorf("unknown option; want %s", names(table))
		case !table[i].many && slices.Contains(given, name):
			err = errors.New("duplicate option")
		default:
			err = table[i].parse(v, a)
		}
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", text, err)
		}
		given = append(given, name)
	}
	return given, nil
}

func names[T any](table []option[T]) string {
	var list []string
	for _, o := range table {
		list = append(list, o.name)
	}
	return strings.Join(list, ", ")
}

// format returns the options of v.
func format[T any](v *T, table []option[T]) (out []string) {
	for _, o := range table {
		for _, text := range o.format(v) {
			out = append(out, o.name+text)
		}
	}
	return out
}

// only returns an error if the argument has no value or another part than the given ones.
func (a argument) only(value, at bool) error {
	switch {
	case a.hasValue && !value, a.hasAt && !at, len(a.options) > 0:
		return errors.New("unexpected value, time or option")
	case !a.hasValue && value:
		return errors.New("want a value")
	}
	return nil
}

// optional returns nil if there is no text.
func optional(given bool, text string) []string {
	if !given {
		return nil
	}
	return []string{text}
}

func duration[T any](name string, field func(*T) *time.Duration) option[T] {
	return option[T]{
		name:   name,
		format: func(v *T) []string { return optional(*field(v) != 0, "="+formatDuration(*field(v))) },
		parse: func(v *T, a argument) (err error) {
			*field(v), err = parseDuration(a.value)
			return errors.Join(a.only(true, false), err)
		},
	}
}

func flag[T any](name string, field func(*T) *bool) option[T] {
	return option[T]{
		name:   name,
		format: func(v *T) []string { return optional(*field(v), "") },
		parse: func(v *T, a argument) error {
			*field(v) = true
			return a.only(false, false)
		},
	}
}

func number[T any, N int | int32](name string, most N, field func(*T) *N) option[T] {
	return option[T]{
		name:   name,
		format: func(v *T) []string { return optional(*field(v) != 0, fmt.Sprintf("=%d", *field(v))) },
		parse: func(v *T, a argument) (err error) {
			*field(v), err = parseNumber(a.value, most)
			return errors.Join(a.only(true, false), err)
		},
	}
}

func text[T any](name string, field func(*T) *string) option[T] {
	return option[T]{
		name:   name,
		format: func(v *T) []string { return optional(*field(v) != "", "="+quote(*field(v))) },
		parse: func(v *T, a argument) error {
			*field(v) = a.value
			return a.only(true, false)
		},
	}
}

// quote quotes s if it has special characters.
func quote(s string) string {
	special := func(r rune) bool {
		return r < 'a' && !(r >= 'A' && r <= 'Z') && !strings.ContainsRune("0123456789-_./:%+*", r) || r > 'z'
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return strconv.Quote(s)
	}
	return s
}

func parseNumber[N int | int32](text string, most N) (N, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || n > int64(most) {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", text, most)
	}
	return N(n), nil
}

// maxTime is far above the times of any test, and sums of such times do not overflow.
const maxTime = 10 * 365 * 24 * time.Hour

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration, such as 2s or 1m30s", text)
	case d < 0 || d > maxTime:
		return 0, fmt.Errorf("%v is negative or more than ten years", d)
	}
	return d, nil
}

// formatDuration returns d without trailing zeros: 1m, not 1m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
