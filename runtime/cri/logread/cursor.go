package logread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
)

// A cursor is a position in a segment.
type cursor struct {
	d    *reading
	s    *segment
	scan *scanner
	from *[3]int64 // for each stream, the offset of the first line
}

// cursor returns a cursor for a segment. If whole is set, data written from now on is
// not read.
func (d *reading) cursor(s *segment, from *[3]int64, whole bool) (*cursor, error) {
	c := &cursor{d: d, s: s, from: from}
	if s.gz {
		r, err := s.reader()
		if err != nil {
			r = failing{err}
		}
		c.scan = newScanner(r, 0)
		return c, nil
	}
	at, end := int64(0), int64(math.MaxInt64)
	if from != nil {
		at = min(from[Stdout], from[Stderr])
	}
	if whole {
		end = s.size
	}
	at = min(at, s.size)
	c.scan = newScanner(io.NewSectionReader(s.file, at, max(end-at, 0)), at)
	return c, nil
}

// failing replaces a compressed file with an invalid header.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// copy prints the complete lines.
func (c *cursor) copy(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := c.scan.next()
		if err == nil {
			if err := c.d.out.piece(p, c.from); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if !c.s.gz {
			return err
		}
		if err := c.finish(true); err != nil {
			return err
		}
		c.scan.r = failing{io.EOF} // once
		return c.d.gap(fmt.Errorf("%w: %s: %w", ErrDamaged, c.s.file.Name(), err))
	}
}

// finish prints a last line without a newline. more is set if other files follow, in
// which the line cannot continue.
func (c *cursor) finish(more bool) error {
	p, ok := c.scan.rest()
	if !ok {
		return nil
	}
	p.tail = more
	return c.d.out.piece(p, c.from)
}
