package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Script is a file of commands and of what they are expected to lead to.
type Script struct {
	file  string
	lines []line
}

// A line is what stands in one, expectations left out: these belong to the
// command before them.
type line struct {
	number  int
	text    string
	command *Command // nil: a comment, or empty
	// leads holds the expectations that were found below this line.
	leads []string
}

// A Command is one line of a script that does something.
type Command struct {
	// Words of the line, with quotes taken away. There is at least one.
	Words []string

	// Want is what the script expects, one string per line.
	Expected []string

	file string
	line int
}

// Parse reads a script. The name of the file is for errors.
func Parse(file, text string) (*Script, error) {
	s := &Script{file: file}
	var last *Command
	number := 0
	for text := range strings.Lines(text) {
		number++
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if i := strings.IndexFunc(text, func(r rune) bool { return r == '\r' || r == 0 }); i >= 0 {
			return nil, fmt.Errorf("%s:%d: %q is in the middle of the line", file, number, text[i])
		}
		l := line{number: number, text: text}
		switch trimmed := strings.TrimSpace(text); {
		case strings.HasPrefix(text, ">"):
			if last == nil {
				return nil, fmt.Errorf("%s:%d: an expectation that no command comes before", file, number)
			}
			want := strings.TrimPrefix(strings.TrimPrefix(text, ">"), " ")
			last.Expected = append(last.Expected, want)
			above := &s.lines[len(s.lines)-1]
			above.leads = append(above.leads, want)
			continue
		case trimmed != "" && !strings.HasPrefix(trimmed, "#"):
			words, err := split(text)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, number, err)
			}
			last = &Command{Words: words, file: file, line: number}
			l.command = last
		}
		s.lines = append(s.lines, l)
	}
	return s, nil
}

// split takes a line apart into words.
func split(text string) (words []string, err error) {
	var word strings.Builder
	inside := false // of a word, which may be empty: ""
	for text != "" {
		switch c := text[0]; c {
		case ' ', '\t':
			if inside {
				words = append(words, word.String())
				word.Reset()
				inside = false
			}
			text = text[1:]
		case '"':
			quoted, err := strconv.QuotedPrefix(text)
			if err != nil {
				return nil, fmt.Errorf("the quotes that begin with %s are no Go string", text)
			}
			part, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("the quotes %s are no Go string", quoted)
			}
			word.WriteString(part)
			inside = true
			text = text[len(quoted):]
		default:
			word.WriteByte(c)
			inside = true
			text = text[1:]
		}
	}
	if inside {
		words = append(words, word.String())
	}
	if len(words) == 0 { // blanks of other kinds than a space
		return nil, errors.New("the line has blanks only")
	}
	return words, nil
}

// String returns the script as it is written to a file.
func (s *Script) String() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(l.text + "\n")
		for _, lead := range l.leads {
			b.WriteString(strings.TrimRight("> "+lead, " ") + "\n")
		}
	}
	return b.String()
}

// Commands returns the commands in their order.
func (s *Script) Commands() []*Command {
	var out []*Command
	for _, l := range s.lines {
		if l.command != nil {
			out = append(out, l.command)
		}
	}
	return out
}

// Play does the commands, one after the other, and returns the script with what
// each led to in place of what was expected. It ends at the first error, which it
// returns with the name of the file and the line.
func (s *Script) Play(do func(*Command) (led []string, err error)) (*Script, error) {
	out := &Script{file: s.file}
	for _, l := range s.lines {
		played := line{number: l.number, text: l.text}
		if l.command != nil {
			led, err := do(l.command)
			if err != nil {
				return nil, l.command.Errorf("%w", err)
			}
			for _, lead := range led {
				if strings.ContainsAny(lead, "\r\n\x00") {
					return nil, l.command.Errorf("what it led to is more than a line: %q", lead)
				}
				played.leads = append(played.leads, strings.TrimRight(lead, " "))
			}
			c := *l.command
			c.Expected = played.leads
			played.command = &c
		}
		out.lines = append(out.lines, played)
	}
	return out, nil
}

// Name returns the first word.
func (c *Command) Name() string { return c.Words[0] }

// Arg returns the i-th word after the first, or "" where there is none.
func (c *Command) Arg(i int) string {
	if i < 1 || i >= len(c.Words) {
		return ""
	}
	return c.Words[i]
}

// Int returns the i-th word after the first as a number.
func (c *Command) Int(i int) (int64, error) {
	n, err := strconv.ParseInt(c.Arg(i), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("argument %d of %s is %q, not a whole number", i, c.Name(), c.Arg(i))
	}
	return n, nil
}

// Seconds returns the i-th word after the first as a time of so many seconds.
func (c *Command) Seconds(i int) (time.Duration, error) {
	f, err := strconv.ParseFloat(c.Arg(i), 64)
	if err != nil || !(f >= 0 && f <= 1e9) {
		return 0, fmt.Errorf("argument %d of %s is %q, not a number of seconds", i, c.Name(), c.Arg(i))
	}
	return time.Duration(f * float64(time.Second)), nil
}

// Errorf returns an error that says where the command stands. One that was made
// by it already is returned as it is.
func (c *Command) Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if _, ok := errors.AsType[*placed](err); ok {
		return err
	}
	return &placed{fmt.Errorf("%s:%d: %w", c.file, c.line, err)}
}

// A placed error says where it happened.
type placed struct{ error }

func (p *placed) Unwrap() error { return p.error }
