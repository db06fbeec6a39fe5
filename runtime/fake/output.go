package fake

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// An Output iterates over the lines that a container prints. It is only a position, and may be
// copied; the zero value has no lines. It is not safe for concurrent use.
type Output struct {
	lines []LogLine
	at    time.Duration // of the line that was printed last, since the start
	n     int           // how often the first of lines was printed
}

// Output returns the lines that the container prints, from the first one on.
func (b *Behavior) Output() Output { return Output{lines: b.Logs} }

// Next returns the time since the start of the next line, and false if there is none.
func (o *Output) Next() (time.Duration, bool) {
	switch {
	case len(o.lines) == 0:
		return 0, false
	case o.n == 0:
		return o.at + o.lines[0].After, true
	}
	return o.at + o.lines[0].Every, true
}

// Print returns that line and advances to the next one. There must be one.
func (o *Output) Print() (text string, stderr bool) {
	o.at, _ = o.Next()
	o.n++
	l := o.lines[0]
	text = strings.ReplaceAll(l.Text, "%d", strconv.Itoa(o.n))
	if !l.Endless() && o.n >= l.Times {
		o.lines, o.n = o.lines[1:], 0
	}
	return text, l.Err
}

// Skip advances past the lines printed until now, since the start.
func (o *Output) Skip(now time.Duration) {
	for {
		at, ok := o.Next()
		if !ok || at > now {
			return
		}
		if l := o.lines[0]; o.n > 0 && l.Every > 0 {
			// In one step, because it may have run for years.
			many := int((now - o.at) / l.Every)
			if !l.Endless() {
				many = min(many, l.Times-o.n)
			}
			o.at, o.n = o.at+time.Duration(many)*l.Every, o.n+many
			if !l.Endless() && o.n >= l.Times {
				o.lines, o.n = o.lines[1:], 0
			}
			continue
		}
		o.Print()
	}
}

// Follow calls emit for each further line at its time, until the container has exited, and returns
// the error of emit or ctx. start is the time at which the container started. Once exited is closed,
// finished returns the time at which it exited: lines until then are emitted.
func (o *Output) Follow(ctx context.Context, start time.Time, exited <-chan struct{}, finished func() time.Time, emit func(at time.Time, text string, stderr bool) error) error {
	for over := false; !over; {
		var due <-chan time.Time // nil if there is no further line
		if at, ok := o.Next(); ok {
			due = time.After(time.Until(start.Add(at)))
		}
		select {
		case <-due:
		case <-exited:
		case <-ctx.Done():
		}
		until := time.Now()
		select {
		case <-exited:
			until, over = finished(), true
		default:
		}
		for at, ok := o.Next(); ok && !start.Add(at).After(until); at, ok = o.Next() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			text, stderr := o.Print()
			if err := emit(start.Add(at), text, stderr); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
