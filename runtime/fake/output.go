package fake

import (
	"strconv"
	"strings"
	"time"
)

// An Output is a position in the output of a container: one for its log, and one for each client that
// follows it.
type Output struct {
	lines []LogLine
	at    time.Duration // of the line that was printed last, since the start
	n     int           // how often the first of lines was printed
}

// Output returns the beginning of the output of a container.
func (b Behavior) Output() Output { return Output{lines: b.Logs} }

// Next returns the time since the start of the next line, and false if there is none.
func (p *Output) Next() (time.Duration, bool) {
	switch {
	case len(p.lines) == 0:
		return 0, false
	case p.n == 0:
		return p.at + p.lines[0].After, true
	}
	return p.at + p.lines[0].Every, true
}

// Print returns that line and advances to the next one. There must be one.
func (p *Output) Print() (text string, stderr bool) {
	p.at, _ = p.Next()
	p.n++
	l := p.lines[0]
	text = strings.ReplaceAll(l.Text, "%d", strconv.Itoa(p.n))
	if !l.Endless() && p.n >= l.Times {
		p.lines, p.n = p.lines[1:], 0
	}
	return text, l.Err
}

// Skip advances past the lines that were printed until now, the time since the start.
func (p *Output) Skip(now time.Duration) {
	for {
		at, ok := p.Next()
		if !ok || at > now {
			return
		}
		if l := p.lines[0]; p.n > 0 && l.Every > 0 {
			// In one step, because it may have run for years.
			many := int((now - p.at) / l.Every)
			if !l.Endless() {
				many = min(many, l.Times-p.n)
			}
			p.at, p.n = p.at+time.Duration(many)*l.Every, p.n+many
			if !l.Endless() && p.n >= l.Times {
				p.lines, p.n = p.lines[1:], 0
			}
			continue
		}
		p.Print()
	}
}
