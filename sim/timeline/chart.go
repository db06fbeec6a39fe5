package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Widths of a chart in columns: of the names at its left, and the least of what
// is at their right.
const (
	nameWidth = 24
	leastPlot = 20
)

// letters of a chart; what is rarer than the rest is drawn over it. Plain ASCII,
// so that a log shows it too.
var letters = map[What]byte{
	Waiting: '.', BackOff: '~', Running: '-', Ready: '=', PodReady: '=',
	Exited: 'x', Succeeded: 'o', Gone: '|', Kill: 'K', Probe: '!', Fault: 'F', Agent: 'A',
	Condition: 0, // in the list; a chart has no room for them
}

var legend = []string{
	"- runs  = ready  . waits  ~ backs off  x failed  o succeeded",
	"K killed  ! probe failed  F fault  A agent  | gone  * note",
}

// WriteChart draws the timeline in text, this many columns wide (at least 44):
// a lane for each pod's phase, one below it for each of its containers, and an
// axis. What happens within one column falls into one letter.
func (t Timeline) WriteChart(w io.Writer, width int) error {
	rows, from, until := t.lanes()
	c := chart{from: from, length: until.Sub(from), columns: max(width-nameWidth, leastPlot)}
	out := bufio.NewWriter(w)
	for _, l := range rows {
		switch {
		case l.pod == "" && l.container == "":
			c.row(out, "node", c.lane(l))
		case l.container == "":
			c.row(out, cut(l.pod, nameWidth-1), c.phases(l))
			if len(l.ready) > 0 {
				c.row(out, "  ready", c.lane(&lane{spans: l.ready}))
			}
		default:
			c.row(out, "  "+cut(l.container, nameWidth-3), c.lane(l))
		}
	}
	c.axis(out)
	for _, line := range legend {
		c.row(out, "", line)
	}
	return out.Flush()
}

// WriteList writes the marks, one a line: when, of whom, what.
func (t Timeline) WriteList(w io.Writer) error {
	marks, from, until := t.ordered()
	out := bufio.NewWriter(w)
	for _, m := range marks {
		if m.At.Before(from) || m.At.After(until) {
			continue
		}
		who := m.Pod
		if m.Container != "" {
			who += " " + m.Container
		}
		fmt.Fprintf(out, "%10s  %-*s %s\n", elapsed(m.At.Sub(from)), nameWidth, clean(cmp.Or(who, "node"), 60), m.words())
	}
	return out.Flush()
}

// cut is clean, with the end of what is too long kept: names of pods differ there.
func cut(s string, n int) string {
	if over := utf8.RuneCountInString(s) - n; over > 0 {
		s = "…" + string([]rune(s)[over+1:])
	}
	return clean(s, n+1)
}

// A chart turns times into columns.
type chart struct {
	from    time.Time
	length  time.Duration
	columns int
}

func (c chart) row(w io.Writer, name, plot string) {
	fmt.Fprintf(w, "%s%s%s\n", name, strings.Repeat(" ", max(nameWidth-utf8.RuneCountInString(name), 0)), strings.TrimRight(plot, " "))
}

// column of a time; the last one is the end's own.
func (c chart) column(at time.Time) int {
	if c.length <= 0 {
		return 0
	}
	return int(float64(at.Sub(c.from)) / float64(c.length) * float64(c.columns-1))
}

// lane draws states, then moments over them. An exit is a moment: what comes
// after it is blank until something begins.
func (c chart) lane(l *lane) string {
	cells := []byte(strings.Repeat(" ", c.columns))
	for _, s := range l.spans {
		letter := letters[s.what]
		if s.what == Exited || s.what == Succeeded {
			letter = ' '
		}
		for i := c.column(s.from); i <= c.column(s.until); i++ {
			cells[i] = letter
		}
	}
	for _, m := range l.moments {
		letter, known := letters[m.What]
		if !known {
			letter = '*'
		}
		if letter != 0 {
			cells[c.column(m.At)] = letter
		}
	}
	return string(cells)
}

// phases draws the pod's lane: each phase with its name, as far as it fits.
func (c chart) phases(l *lane) string {
	cells := []rune(strings.Repeat(" ", c.columns))
	for i, s := range l.spans {
		first, next := c.column(s.from), c.columns
		if i+1 < len(l.spans) {
			next = c.column(l.spans[i+1].from)
		} else if s.until.Before(c.from.Add(c.length)) {
			next = c.column(s.until)
		}
		name := []rune(clean(s.text, 20))
		for at := first; at < next; at++ {
			switch i := at - first; {
			case i < len(name):
				cells[at] = name[i]
			case i == len(name):
				cells[at] = ' '
			default:
				cells[at] = '.'
			}
		}
	}
	for _, m := range l.moments {
		if letter, known := letters[m.What]; letter != 0 {
			cells[c.column(m.At)] = rune(letter)
		} else if !known {
			cells[c.column(m.At)] = '*'
		}
	}
	return string(cells)
}

// axis draws the time since the beginning.
func (c chart) axis(w io.Writer) {
	line, labels := []byte(strings.Repeat("-", c.columns)), []byte(strings.Repeat(" ", c.columns+8))
	step := tick(c.length, max(c.columns/10, 1))
	for n := range c.length/step + 1 {
		at := n * step
		i := c.column(c.from.Add(at))
		line[i] = '+'
		copy(labels[i:], elapsed(at))
	}
	c.row(w, "", string(line))
	c.row(w, "", string(labels))
}
