package logread

import (
	"context"
	"math"
)

// reach is how far it is looked back for the beginning of a line whose end is
// wanted, from the last that was found of it.
const reach = 1 << 20

// A start is where reading begins: of each stream in a segment of its own.
type start struct {
	segment [3]int
	at      [3]int64
}

// first is the segment that is read first.
func (s start) first() int { return min(s.segment[Stdout], s.segment[Stderr]) }

// in returns from where on each stream is wanted in a segment, nil: all of it.
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

// A locator finds where the last lines begin. It is told of the lines of a log, the
// last one first.
type locator struct {
	need     int64 // lines that are wanted still
	physical bool  // pieces are lines (la-10), and all is of Stdout
	stream   Stream
	start    start
	open     [3]bool // what is wanted of a stream may begin earlier still
	mark     int64   // where something was last found in this segment

	ctx    context.Context // of the one search: nobody may want the answer any more
	looked int             // lines
}

// locate returns where the last n lines of segments begin (F-37).
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
		return start{}, nil // there are fewer
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

// plain looks through a file from its end.
func (l *locator) plain(i int, s *segment, last, follow bool) error {
	l.mark = s.size
	if last {
		l.exclude(i, s.size)
	}
	return backward(s.file, s.size, func(at int64, text []byte, ended bool) bool {
		if last && !ended && follow {
			l.exclude(i, at) // somebody is writing it
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

// near gives up what is looked for too far away.
func (l *locator) near(at int64) bool {
	if l.need == 0 && l.mark-at > reach {
		l.open = [3]bool{}
	}
	return !l.done() && !l.calledOff()
}

// calledOff looks from time to time whether somebody still waits.
func (l *locator) calledOff() bool {
	l.looked++
	return l.looked%1024 == 0 && l.ctx.Err() != nil
}

func (l *locator) line(segment int, at int64, s Stream, partial bool) {
	if !partial {
		l.open[s] = false // what comes after it has been found whole
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

// compressed looks through a file that can only be read from its beginning, twice if
// it has more lines than are wanted: first it counts them.
func (l *locator) compressed(i int, s *segment) {
	wanted, more := l.open, l.need > 0 // the streams of which something is looked for
	if more {
		wanted = [3]bool{Stdout: true, Stderr: true}
	}
	var count int64
	var any, partial [3]bool
	var last [3]int64 // pieces
	size := l.forward(s, func(at, _ int64, stream Stream, part bool) bool {
		any[stream], partial[stream], last[stream] = true, part, at
		if !part {
			count++
		}
		return true
	})
	var unfinished [3]bool // lines whose last piece ends them, though it does not say so
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
		case !more && !partial[stream]: // what is open is whole
			l.open[stream] = false
		default:
			l.start.segment[stream], l.start.at[stream] = i, ends[stream]
			l.open[stream] = ends[stream] == 0 && !l.physical
		}
	}
}

// forward calls visit with the lines of a compressed file that count, until it
// returns false, and returns how far it came.
func (l *locator) forward(s *segment, visit func(at, end int64, stream Stream, partial bool) bool) int64 {
	r, err := s.reader()
	if err != nil {
		return 0 // it is damaged, which is told when it is read
	}
	var p parser
	for sc := newScanner(r, 0); ; {
		c, err := sc.next()
		last := err != nil // what there is of a damaged file counts
		if last {
			var ok bool
			if c, ok = sc.rest(); !ok {
				return sc.at
			}
		}
		if c.head && !l.tell(&p, c, visit) || last || l.calledOff() {
			return sc.at
		}
	}
}

func (l *locator) tell(p *parser, c piece, visit func(at, end int64, stream Stream, partial bool) bool) bool {
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
