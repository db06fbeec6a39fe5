package record

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// Write writes frames as a file that [Read] reads: one recording in one file. The first frame, and no other
// one, must be a Header; the last one should be an End. Slots are not used: each call is written with its
// messages. It returns an error if a frame is larger than 16 MiB or has no JSON form, or that of out.
func Write(out io.Writer, frames iter.Seq[Frame]) error {
	w, err := newFrameWriter(out)
	if err != nil {
		return err
	}
	n := 0
	for f := range frames {
		if f.kinds() != 1 || (n == 0) != (f.Header != nil) {
			return fmt.Errorf("record: frame %d: it must be of one kind, and the first one a header", n)
		}
		if f.Call != nil {
			c := *f.Call
			c.Slot, c.Same = 0, 0
			f.Call = &c
		}
		if err := w.write(f); err != nil {
			return fmt.Errorf("record: frame %d: %w", n, err)
		}
		n++
	}
	if n == 0 {
		return errors.New("record: no frames")
	}
	return nil
}
