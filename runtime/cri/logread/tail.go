package logread

import (
	"context"
	"math"
)

// reach is the maximum distance, from the last part found, at which the beginning of
// a line is searched.
const reach = 1 << 20

// A start is the position where reading begins, for each stream.
type start struct {
	segment [3]int
	at      [3]int64
}

// first returns the first segment that is read.
func (s start) first() int { return min(s.segment[Stdout], s.segment[Stderr]) }

// in returns the offset for each stream in a segment, or nil for 0.
func (s start) in(segment int) *[3]int64 {
	var from [3]int64
	for _, stream := range []Stream{Stdout, Stderr} {
		switch {
		case s.segment[stream] > segment:
			from[stream] = math.MaxInt64
		case s.segment[stream] == segment:
			from[stream] = s.at[stream]
		}
	}
	if from == [3]int64{} {
		return nil
	}
	return &from
}

// A locator finds the position of the last lines. Lines are passed to it in reverse
// order.
type locator struct {
	need     int64 // number of lines still to be found
	physical bool  // parts are lines, and all count as Stdout
	stream   Stream
	start    start
	open     [3]bool // the first line of a stream may begin earlier
	mark     int64   // offset of the last part found in this segment

	ctx    context.Context // of the search
	looked int             // number of lines
}

// locate returns the position of the last n lines of segments.
func locate(ctx context.Context, segments []*segment, n int64, stream Stream, physical, follow bool) (start, error) {
	l := &locator{ctx: ctx, need: n, physical: physical, stream: stream}
	last := len(segments) - 1
	for i := last; i >= 0 && (i == last || !l.done()) && ctx.Err() == nil; i-- {
		s := segments[i]
		if s.gz {
			if i == last {
				l.exclude(i, math.MaxInt64)
			}
			l.compressed(i, s)
			continue
		}
		if err := l.plain(i, s, i == last, follow); err != nil {
			return start{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return start{}, err
	}
	if l.need > 0 {
		return start{}, nil // the log has fewer lines
	}
	if l.physical {
		l.start.segment[Stderr], l.start.at[Stderr] = l.start.segment[Stdout], l.start.at[Stdout]
	}
	return l.start, nil
}

func (l *locator) exclude(segment int, at int64) {
	for _, s := range []Stream{Stdout, Stderr} {
		l.start.segment[s], l.start.at[s] = segment, at
	}
}

func (l *locator) done() bool { return l.need == 0 && !l.open[Stdout] && !l.open[Stderr] }

// plain searches a file from its end.
func (l *locator) plain(i int, s *segment, last, follow bool) error {
	l.mark = s.size
	if last {
		l.exclude(i, s.size)
	}
	return backward(s.file, s.size, func(at int64, text []byte, ended bool) bool {
		if last && !ended && follow {
			l.exclude(i, at) // it is not complete yet
			return !l.done()
		}
		stream, partial := Stdout, false
		if !l.physical {
			parsed, err := Parse(text)
			if err != nil || l.stream != All && l.stream != parsed.Stream {
				return l.near(at)
			}
			stream, partial = parsed.Stream, parsed.Partial
		}
		l.line(i, at, stream, partial)
		return l.near(at)
	})
}

// near stops the search for the beginning of a line beyond reach, and reports whether
// to continue.
func (l *locator) near(at int64) bool {
	if l.need == 0 && l.mark-at > reach {
		l.open = [3]bool{}
	}
	return !l.done() && !l.calledOff()
}

// calledOff checks every 1024 lines whether ctx is done.
func (l *locator) calledOff() bool {
	l.looked++
	return l.looked%1024 == 0 && l.ctx.Err() != nil
}

func (l *locator) line(segment int, at int64, s Stream, partial bool) {
	if !partial {
		l.open[s] = false // the line after it is complete
	}
	if !l.open[s] {
		if l.need == 0 {
			return
		}
		l.need--
		l.open[s] = !l.physical
	}
	l.start.segment[s], l.start.at[s], l.mark = segment, at, at
}

// compressed searches a file that can only be read from its beginning. It counts the
// lines, and reads the file again if it has more than needed.
func (l *locator) compressed(i int, s *segment) {
	wanted, more := l.open, l.need > 0 // the streams to search
	if more {
		wanted = [3]bool{Stdout: true, Stderr: true}
	}
	var count int64
	var any, partial [3]bool
	var last [3]int64 // offset of the last part
	size := l.forward(s, func(at, _ int64, stream Stream, part bool) bool {
		any[stream], partial[stream], last[stream] = true, part, at
		if !part {
			count++
		}
		return true
	})
	var unfinished [3]bool // streams whose last line ends with a partial one
	for _, stream := range []Stream{Stdout, Stderr} {
		if unfinished[stream] = partial[stream] && !l.open[stream] && more; unfinished[stream] {
			count++
		}
	}
	skip := max(count-l.need, 0)
	l.need -= count - skip
	var ends [3]int64
	if skip > 0 {
		l.forward(s, func(at, end int64, stream Stream, part bool) bool {
			if !part || unfinished[stream] && at == last[stream] {
				skip--
				ends[stream] = end
			}
			return skip > 0
		})
	}
	for _, stream := range []Stream{Stdout, Stderr} {
		switch {
		case !wanted[stream]:
		case !any[stream]:
			l.open[stream] = l.open[stream] && (more || size <= reach)
		case !more && !partial[stream]: // the open line is complete
			l.open[stream] = false
		default:
			l.start.segment[stream], l.start.at[stream] = i, ends[stream]
			l.open[stream] = ends[stream] == 0 && !l.physical
		}
	}
}

// forward calls visit with the lines of a compressed file that count, until it
// returns false, and returns the offset it reached.
func (l *locator) forward(s *segment, visit func(at, end int64, stream Stream, partial bool) bool) int64 {
	r, err := s.reader()
	if err != nil {
		return 0 // the error is reported when it is read
	}
	var p parser
	for sc := newScanner(r, 0); ; {
		c, err := sc.next()
		last := err != nil // the readable part of a damaged file counts
		if last {
			var ok bool
			if c, ok = sc.rest(); !ok {
				return sc.at
			}
		}
		if c.head && !l.visitPiece(&p, c, visit) || last || l.calledOff() {
			return sc.at
		}
	}
}

func (l *locator) visitPiece(p *parser, c piece, visit func(at, end int64, stream Stream, partial bool) bool) bool {
	end := c.at + int64(len(c.text)) + 1
	if l.physical {
		return visit(c.at, end, Stdout, false)
	}
	var line Line
	err := p.parse(&line, c.text)
	if err != nil || l.stream != All && l.stream != line.Stream {
		return true
	}
	return visit(c.at, end, line.Stream, line.Partial)
}
