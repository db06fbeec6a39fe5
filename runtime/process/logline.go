package process

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// maxLogLine is the maximum length in bytes of the text of one log entry, which is
// containerd's default.
const maxLogLine = 16 << 10

// logTime is RFC3339Nano with all nine digits, so that entries sort as text.
const logTime = "2006-01-02T15:04:05.000000000Z07:00"

// appendLogLine appends one entry of a CRI log:
//
//	2026-01-02T03:04:05.000000006Z stdout F the line
//
// The tag is F (full) if the text ended in a newline, and P (partial) if the line
// continues in the next entry of the stream, or if the stream ended without a
// newline. text must not contain a newline.
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

// A lineSplitter splits a stream at newlines into pieces of at most maxLogLine
// bytes. The result does not depend on how the bytes are divided into writes.
type lineSplitter struct {
	// held is the beginning of a line, at most maxLogLine bytes.
	held []byte
}

// feed calls emit for each piece that data completes. The text is valid only
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
			// The newline may be the next byte: a piece of the maximum length is
			// kept until then.
			s.held = append(s.held, data...)
			return
		default:
			s.held = append(s.held, data[:room]...)
			emit(s.held, false)
			s.held, data = s.held[:0], data[room:]
		}
	}
}

// finish emits the rest of a stream that did not end with a newline.
func (s *lineSplitter) finish(emit func(text []byte, full bool)) {
	if len(s.held) > 0 {
		emit(s.held, false)
		s.held = nil
	}
}

// A logWriter writes the entries of both streams of a container to one file.
// Safe for concurrent use.
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

// reopen creates a new file of the same name, after the old one was renamed. If
// that fails, the old file remains in use. From the moment that the new file exists,
// nothing is written to the old one.
func (w *logWriter) reopen() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	file, err := w.open()
	if err != nil {
		return err
	}
	old := w.file
	w.file = file
	return old.Close()
}

func (w *logWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file.Close()
}

// copy writes all of src as entries of the stream, until the end of src.
//
// Output that cannot be written (a full disk) is dropped, so that the container
// does not block or get a broken pipe.
func (w *logWriter) copy(stream string, src io.Reader) error {
	var split lineSplitter
	var failed error
	emit := func(text []byte, full bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.line = appendLogLine(w.line[:0], w.now(), stream, text, full)
		// One write per entry: readers see complete entries.
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
