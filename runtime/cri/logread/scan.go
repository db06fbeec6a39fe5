package logread

import (
	"bytes"
	"io"
)

// maxLine is the buffer size for a line. Runtimes split lines at 16 KiB, which can be
// 96 KiB in Docker's format.
const maxLine = 128 << 10

// A scanner splits a file into lines. It can continue after the end of a file that
// has grown. A line longer than its buffer is returned in pieces.
type scanner struct {
	r        io.Reader
	buf      []byte
	from, to int   // the part of buf that has not been returned
	searched int   // length of the part without a newline
	at       int64 // offset of buf[from] in the file
	inside   bool  // buf[from] is not the beginning of a line
}

// A piece is a line without its newline, or a part of a long line.
type piece struct {
	text       []byte // valid until the next call
	at         int64
	head, tail bool // includes the beginning, the end of the line
}

func newScanner(r io.Reader, at int64) *scanner {
	return &scanner{r: r, buf: make([]byte, maxLine), at: at}
}

// next returns the next piece, or io.EOF if no further one ends with a newline.
func (s *scanner) next() (piece, error) {
	for {
		if i := bytes.IndexByte(s.buf[s.from+s.searched:s.to], '\n'); i >= 0 {
			n := s.searched + i
			p := piece{text: s.buf[s.from : s.from+n], at: s.at, head: !s.inside, tail: true}
			s.take(n + 1)
			s.inside = false
			return p, nil
		}
		s.searched = s.to - s.from
		if s.searched == len(s.buf) {
			p := piece{text: s.buf, at: s.at, head: !s.inside}
			s.take(s.searched)
			s.inside = true
			return p, nil
		}
		if err := s.fill(); err != nil {
			return piece{}, err
		}
	}
}

// rest returns the text after the last newline. It is not ok if there is none.
func (s *scanner) rest() (piece, bool) {
	p := piece{text: s.buf[s.from:s.to], at: s.at, head: !s.inside, tail: false}
	s.take(s.to - s.from)
	s.inside = false
	return p, len(p.text) > 0
}

func (s *scanner) take(n int) {
	s.from += n
	s.at += int64(n)
	s.searched = 0
	if s.from == s.to {
		s.from, s.to = 0, 0
	}
}

func (s *scanner) fill() error {
	if s.to == len(s.buf) {
		s.to = copy(s.buf, s.buf[s.from:s.to])
		s.from = 0
	}
	n, err := s.r.Read(s.buf[s.to:])
	s.to += n
	if n > 0 {
		return nil // the error is returned again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// backward calls visit with the lines of the first size bytes of f, last one first,
// until it returns false. Of long lines it passes the beginning. ended reports
// whether the line has a newline.
func backward(f io.ReaderAt, size int64, visit func(at int64, text []byte, ended bool) bool) error {
	const block = 32 << 10
	buf, long := make([]byte, block), []byte(nil)
	ended := false
	end := size // of the line searched for
	for lo, hi, loaded := size, size, size; ; {
		p := -1
		if hi > lo {
			p = bytes.LastIndexByte(buf[:hi-lo], '\n')
		}
		if p < 0 && lo > 0 { // its beginning is before lo
			hi, loaded = lo, lo
			lo = max(lo-block, 0)
			if _, err := f.ReadAt(buf[:hi-lo], lo); err != nil {
				return err
			}
			continue
		}
		start := lo + int64(p) + 1 // 0 if there is no newline
		if start < end || ended {
			n := min(end-start, maxLine)
			var text []byte
			if start+n <= loaded {
				text = buf[start-lo : start-lo+n]
			} else {
				if long == nil {
					long = make([]byte, maxLine)
				}
				text = long[:n]
				if _, err := f.ReadAt(text, start); err != nil {
					return err
				}
			}
			if !visit(start, text, ended) {
				return nil
			}
		}
		if p < 0 {
			return nil
		}
		ended = true
		end, hi = start-1, start-1
	}
}
