package logread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
)

// A cursor is a place in a segment.
type cursor struct {
	d    *reading
	s    *segment
	scan *scanner
	from *[3]int64 // of each stream, what comes before is not wanted
}

// cursor begins to read a segment. whole: what is written to it from now on is not
// wanted.
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

// failing is what a compressed file reads as that does not even begin as one.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// copy prints what there is of whole lines.
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

// finish prints a last line that has no end (la-13). more: other files follow, and a
// line cannot go on in them.
func (c *cursor) finish(more bool) error {
	p, ok := c.scan.rest()
	if !ok {
		return nil
	}
	p.tail = more
	return c.d.out.piece(p, c.from)
}
