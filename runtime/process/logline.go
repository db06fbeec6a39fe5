package process

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// maxLogLine is how much of a line one entry of a log holds, in bytes; it is
// containerd's default.
const maxLogLine = 16 << 10

// logTime is RFC3339Nano with all nine digits, so that entries sort as text.
const logTime = "2006-01-02T15:04:05.000000000Z07:00"

// appendLogLine appends one entry of a CRI log:
//
//	2026-01-02T03:04:05.000000006Z stdout F the line
//
// An entry is F (full) if its text ended in a newline and P (partial) if the
// line goes on in the next entry of the stream, or if the stream ended
// without a newline. text holds no newline.
func appendLogLine(dst []byte, t time.Time, stream string, text []byte, full bool) []byte {
	dst = t.UTC().AppendFormat(dst, logTime)
	dst = append(dst, ' ')
	dst = append(dst, stream...)
	if full {
		dst = append(dst, " F "...)
	} else {
		dst = append(dst, " P "...)
	}
	dst = append(dst, text...)
	return append(dst, '\n')
}

// A lineSplitter cuts a stream into pieces of at most maxLogLine bytes, at
// newlines where there are any. It depends on the bytes alone, not on how
// they arrive: a line that is written in two calls is one entry.
type lineSplitter struct {
	// held is the beginning of a line, shorter than or as long as maxLogLine.
	held []byte
}

// feed calls emit for each piece that data completes. The text is valid
// during the call.
func (s *lineSplitter) feed(data []byte, emit func(text []byte, full bool)) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		room := maxLogLine - len(s.held)
		switch {
		case end >= 0 && end <= room:
			s.held = append(s.held, data[:end]...)
			emit(s.held, true)
			s.held, data = s.held[:0], data[end+1:]
		case len(data) <= room:
			// The newline may be the next byte, so a piece that is just full
			// waits for it.
			s.held = append(s.held, data...)
			return
		default:
			s.held = append(s.held, data[:room]...)
			emit(s.held, false)
			s.held, data = s.held[:0], data[room:]
		}
	}
}

// finish emits what the stream ended with, if not with a newline.
func (s *lineSplitter) finish(emit func(text []byte, full bool)) {
	if len(s.held) > 0 {
		emit(s.held, false)
		s.held = nil
	}
}

// A logWriter writes the entries of both streams of a container to one file.
type logWriter struct {
	open func() (io.WriteCloser, error)
	now  func() time.Time

	mu   sync.Mutex // guards the fields below
	file io.WriteCloser
	line []byte // scratch
}

func newLogWriter(open func() (io.WriteCloser, error), now func() time.Time) (*logWriter, error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &logWriter{open: open, now: now, file: file}, nil
}

// reopen continues in a new file of the same name, after the old one was
// renamed. If there can be none it goes on with the old file.
func (w *logWriter) reopen() error {
	file, err := w.open()
	if err != nil {
		return err
	}
	w.mu.Lock()
	old := w.file
	w.file = file
	w.mu.Unlock()
	return old.Close()
}

func (w *logWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file.Close()
}

// copy writes all of src as entries of the stream, until src ends.
//
// What cannot be written (a full disk) is dropped and src is read on: a
// container must not stand still, or die of a closed pipe, for its log.
func (w *logWriter) copy(stream string, src io.Reader) error {
	var split lineSplitter
	var failed error
	emit := func(text []byte, full bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.line = appendLogLine(w.line[:0], w.now(), stream, text, full)
		// One write per entry: a reader sees whole ones.
		if _, err := w.file.Write(w.line); err != nil {
			failed = err
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		split.feed(buf[:n], emit)
		if err != nil {
			split.finish(emit)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, failed)
		}
	}
}
