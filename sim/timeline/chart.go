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

// Widths of a chart in columns: of the names on the left, and the minimum of the plot.
const (
	nameWidth = 24
	leastPlot = 20
)

// letters of a chart, in ASCII so that logs can contain it. Events are drawn over states.
var letters = map[Kind]byte{
	Waiting: '.', BackOff: '~', Running: '-', Ready: '=', PodReady: '=',
	Exited: 'x', Succeeded: 'o', Deleted: '|', Kill: 'K', Probe: '!', Fault: 'F', Agent: 'A',
	Condition: 0, // only in the list
}

var legend = []string{
	"- runs  = ready  . waits  ~ backs off  x failed  o succeeded",
	"K killed  ! probe failed  F fault  A agent  | deleted  * note",
}

// WriteChart writes the timeline as a text chart of width columns, at least 44: a row
// for each pod with its phase, below it one for each of its containers, and a time
// axis. Marks within one column are drawn as one letter.
func (t Timeline) WriteChart(w io.Writer, width int) error {
	rows, from, until := t.lanes()
	c := chart{from: from, length: until.Sub(from), columns: max(width-nameWidth, leastPlot)}
	out := bufio.NewWriter(w)
	for _, l := range rows {
		switch {
		case l.pod == "" && l.container == "":
			c.row(out, "node", c.lane(l))
		case l.container == "":
			c.row(out, truncateLeft(l.pod, nameWidth-1), c.phases(l))
			if len(l.ready) > 0 {
				c.row(out, "  ready", c.lane(&lane{spans: l.ready}))
			}
		default:
			c.row(out, "  "+truncateLeft(l.container, nameWidth-3), c.lane(l))
		}
	}
	c.axis(out)
	for _, line := range legend {
		c.row(out, "", line)
	}
	return out.Flush()
}

// WriteList writes the marks, one per line: time, pod and container, description.
func (t Timeline) WriteList(w io.Writer) error {
	marks, from, until := t.ordered()
	out := bufio.NewWriter(w)
	for _, m := range marks {
		if m.At.Before(from) || m.At.After(until) {
			continue
		}
		object := m.Pod
		if m.Container != "" {
			object += " " + m.Container
		}
		fmt.Fprintf(out, "%10s  %-*s %s\n", elapsed(m.At.Sub(from)), nameWidth, sanitize(cmp.Or(object, "node"), 60), m.description())
	}
	return out.Flush()
}

// truncateLeft is sanitize, but cuts the beginning of a long text: the names of pods
// differ at their ends.
func truncateLeft(s string, n int) string {
	if over := utf8.RuneCountInString(s) - n; over > 0 {
		s = "…" + string([]rune(s)[over+1:])
	}
	return sanitize(s, n+1)
}

// A chart maps times to columns.
type chart struct {
	from    time.Time
	length  time.Duration
	columns int
}

func (c chart) row(w io.Writer, name, plot string) {
	fmt.Fprintf(w, "%s%s%s\n", name, strings.Repeat(" ", max(nameWidth-utf8.RuneCountInString(name), 0)), strings.TrimRight(plot, " "))
}

// column returns the column of a time. Only the end of the timeline is in the last one.
func (c chart) column(at time.Time) int {
	if c.length <= 0 {
		return 0
	}
	return int(float64(at.Sub(c.from)) / float64(c.length) * float64(c.columns-1))
}

// lane draws the states, then the events over them. The time after an exit is blank
// until the next state.
func (c chart) lane(l *lane) string {
	cells := []byte(strings.Repeat(" ", c.columns))
	for _, s := range l.spans {
		letter := letters[s.kind]
		if s.kind == Exited || s.kind == Succeeded {
			letter = ' '
		}
		for i := c.column(s.from); i <= c.column(s.until); i++ {
			cells[i] = letter
		}
	}
	for _, m := range l.moments {
		letter, exists := letters[m.Kind]
		if !exists {
			letter = '*'
		}
		if letter != 0 {
			cells[c.column(m.At)] = letter
		}
	}
	return string(cells)
}

// phases draws the row of a pod: each phase with its name, as far as it fits.
func (c chart) phases(l *lane) string {
	cells := []rune(strings.Repeat(" ", c.columns))
	for i, s := range l.spans {
		first, next := c.column(s.from), c.columns
		if i+1 < len(l.spans) {
			next = c.column(l.spans[i+1].from)
		} else if s.until.Before(c.from.Add(c.length)) {
			next = c.column(s.until)
		}
		name := []rune(sanitize(s.text, 20))
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
		if letter, exists := letters[m.Kind]; letter != 0 {
			cells[c.column(m.At)] = rune(letter)
		} else if !exists {
			cells[c.column(m.At)] = '*'
		}
	}
	return string(cells)
}

// axis draws the time axis, relative to the start.
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
