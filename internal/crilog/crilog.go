// Package crilog writes the logs of containers in the CRI's format.
package crilog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// The streams of a container.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// MaxEntry is the maximum length in bytes of the text of one log entry, which is
// containerd's default.
const MaxEntry = 16 << 10

// logTime is RFC3339Nano with all nine digits, so that entries sort as text.
const logTime = "2006-01-02T15:04:05.000000000Z07:00"

// AppendEntry appends one entry of a CRI log:
//
//	2026-01-02T03:04:05.000000006Z stdout F the line
//
// The tag is F (full) if the text ended in a newline, and P (partial) if the line
// continues in the next entry of the stream, or if the stream ended without a
// newline. text must not contain a newline.
func AppendEntry[T string | []byte](dst []byte, t time.Time, stream string, text T, full bool) []byte {
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

// A lineSplitter splits a stream at newlines into pieces of at most MaxEntry
// bytes. The result does not depend on how the bytes are divided into writes.
type lineSplitter struct {
	// held is the beginning of a line, at most MaxEntry bytes.
	held []byte
}

// feed calls emit for each piece that data completes. The text is valid only
// during the call.
func (s *lineSplitter) feed(data []byte, emit func(text []byte, full bool)) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		room := MaxEntry - len(s.held)
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

// An Offset counts the bytes of the streams of a container.
type Offset struct{ Stdout, Stderr int64 }

func (o *Offset) add(stream string, text int, full bool) {
	n := int64(text)
	if full {
		n++ // the newline
	}
	if stream == Stderr {
		o.Stderr += n
	} else {
		o.Stdout += n
	}
}

// Plus returns the offset after the entries of a log of a Writer. It ends at what is not one.
func (o Offset) Plus(log io.Reader) Offset {
	for in := bufio.NewReaderSize(log, MaxEntry+128); ; {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return o
		}
		fields := bytes.SplitN(line[:len(line)-1], []byte(" "), 4)
		if len(fields) < 4 {
			return o
		}
		o.add(string(fields[1]), len(fields[3]), string(fields[2]) == "F")
	}
}

// A Writer writes the entries of both streams of a container to one file. Safe for
// concurrent use.
type Writer struct {
	open func() (io.WriteCloser, error)

	mu      sync.Mutex // guards the fields below
	file    io.WriteCloser
	written Offset
	line    []byte // scratch
}

// NewWriter returns a Writer to the file that open opens, now and when it is reopened. Written
// are the bytes of the streams that were written before.
func NewWriter(open func() (io.WriteCloser, error), written Offset) (*Writer, error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &Writer{open: open, file: file, written: written}, nil
}

// Reopen opens a new file of the same name, after the old one was renamed, and returns what was
// written until then. If that fails, the old file remains in use. From the moment that the new
// file exists, nothing is written to the old one.
func (w *Writer) Reopen() (Offset, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	file, err := w.open()
	if err != nil {
		return w.written, err
	}
	old := w.file
	w.file = file
	return w.written, old.Close()
}

// Written returns the bytes of the streams that are entries.
func (w *Writer) Written() Offset {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

// Close closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file.Close()
}

// Stream returns a writer of one stream. Its Close writes the rest of a line that has not ended.
func (w *Writer) Stream(name string) *Stream { return &Stream{w: w, name: name} }

// Copy writes all of src as entries of a stream, until the end of src.
func (w *Writer) Copy(stream string, src io.Reader) error {
	s := w.Stream(stream)
	_, err := io.Copy(s, src)
	return errors.Join(err, s.Close())
}

// A Stream writes a stream of a container as entries. It is not safe for concurrent use.
//
// Output that cannot be written (a full disk) is dropped, so that the container does not block
// or get a broken pipe. Close returns the last error.
type Stream struct {
	w      *Writer
	name   string
	split  lineSplitter
	failed error
}

// Write writes the lines that p completes. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	s.split.feed(p, s.entry)
	return len(p), nil
}

// Close writes the rest of a line that has not ended.
func (s *Stream) Close() error {
	s.split.finish(s.entry)
	return s.failed
}

func (s *Stream) entry(text []byte, full bool) {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = AppendEntry(w.line[:0], time.Now(), s.name, text, full)
	w.written.add(s.name, len(text), full)
	// One write per entry: readers see complete entries.
	if _, err := w.file.Write(w.line); err != nil {
		s.failed = err
	}
}
