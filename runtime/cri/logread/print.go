package logread

import (
	"errors"
	"io"
	"time"
)

// TimeFormat is the format of the times that [Request].Timestamps requests: RFC3339Nano with all nine digits.
const TimeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// errLimit: Request.Limit is reached.
var errLimit = errors.New("limit reached")

// A printer writes the selected lines.
type printer struct {
	w          io.Writer
	stream     Stream
	timestamps bool
	since      time.Time
	second     string // of since, in UTC
	physical   bool   // since applies to each part of a line
	left       int64  // bytes until the limit; negative: no limit

	buf     []byte // not written yet
	written int64
	lines   int64 // read, including those not selected
	parser  parser
	streams [3]struct {
		inside bool // in the middle of a line
		drop   bool // that is not selected
	}
	line    Line // the last one; its stream is All if it is not selected
	skipped int64
	bad     []byte // the beginning of the first invalid line
}

// batch is the number of bytes per write, if available.
const batch = 64 << 10

func newPrinter(w io.Writer, req Request, physical bool) *printer {
	p := &printer{
		w: w, stream: req.Stream, timestamps: req.Timestamps, physical: physical, left: -1,
		since: req.Since, second: req.Since.UTC().Format("2006-01-02T15:04:05"),
	}
	if req.Limit != nil {
		p.left = *req.Limit
	}
	p.buf = make([]byte, 0, batch+4<<10)
	return p
}

// piece prints a piece of a file that is not before from of its stream.
func (p *printer) piece(c piece, from *[3]int64) error {
	l := &p.line
	if !c.head { // continuation of a line
		if l.Stream == All {
			return nil
		}
		l.Content = c.text
		return p.print(l, false, c.tail)
	}
	if err := p.parser.parse(l, c.text); err != nil {
		if p.skipped == 0 {
			p.bad = append(p.bad, c.text[:min(len(c.text), 80)]...)
		}
		p.skipped++
		l.Stream = All
		return nil
	}
	p.lines++
	if from != nil && c.at < from[l.Stream] || p.stream != All && p.stream != l.Stream {
		l.Stream = All
		return nil
	}
	return p.print(l, true, c.tail)
}

// print prints a line or a part of one, which may have the head, the tail, or both.
func (p *printer) print(l *Line, head, tail bool) error {
	s := &p.streams[l.Stream]
	begins := head && !s.inside
	if (begins || head && p.physical) && !p.since.IsZero() {
		s.drop = p.older(l)
	}
	s.inside = l.Partial || !tail
	if s.drop {
		return nil
	}
	if begins && p.timestamps {
		p.stamp(l)
	}
	p.buf = append(p.buf, l.Content...)
	if tail && !l.Partial {
		p.buf = append(p.buf, '\n')
	}
	if len(p.buf) >= batch || p.left >= 0 && int64(len(p.buf)) >= p.left {
		return p.flush()
	}
	return nil
}

// older reports whether a line is before Since. It compares the text of the seconds
// first, because parsing times is slow.
func (p *printer) older(l *Line) bool {
	if n := len(p.second); l.Stamp[len(l.Stamp)-1] == 'Z' && string(l.Stamp[:n]) != p.second {
		return string(l.Stamp[:n]) < p.second
	}
	at, err := l.Time()
	return err == nil && at.Before(p.since)
}

func (p *printer) stamp(l *Line) {
	if n := len(TimeFormat) - len("07:00"); len(l.Stamp) == n && l.Stamp[n-1] == 'Z' {
		p.buf = append(p.buf, l.Stamp...) // already in this format
	} else if at, err := l.Time(); err == nil {
		p.buf = at.AppendFormat(p.buf, TimeFormat)
	}
	p.buf = append(p.buf, ' ')
}

// flush writes the buffered output, up to the limit.
func (p *printer) flush() error {
	out, last := p.buf, false
	if p.left >= 0 && int64(len(out)) >= p.left {
		out, last = out[:p.left], true
	}
	p.buf = p.buf[:0]
	if len(out) > 0 {
		n, err := p.w.Write(out)
		p.written += int64(n)
		if p.left >= 0 {
			p.left -= int64(n)
		}
		if err != nil {
			return &writeError{err}
		}
	}
	if last {
		return errLimit
	}
	return nil
}

// A writeError is an error of the writer, as opposed to the log.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }
