package crilog

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzSplit checks that the entries of a stream do not depend on the sizes of its reads,
// that they are short enough, and that together they are the stream.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), uint16(1))
	f.Add(bytes.Repeat([]byte("x"), MaxEntry), uint16(7))
	f.Add(append(bytes.Repeat([]byte("x"), MaxEntry), '\n'), uint16(MaxEntry))
	f.Add(append(bytes.Repeat([]byte("x"), 3*MaxEntry+1), "\ny\n"...), uint16(1000))
	f.Fuzz(func(t *testing.T, data []byte, step uint16) {
		split := func(step int) (pieces []string, back []byte) {
			var s lineSplitter
			emit := func(text []byte, full bool) {
				require.LessOrEqual(t, len(text), MaxEntry)
				require.NotContains(t, string(text), "\n")
				back = append(back, text...)
				if full {
					back = append(back, '\n')
				}
				line := AppendEntry(nil, time.Unix(1, 2), Stdout, text, full)
				require.Equal(t, 1, bytes.Count(line, []byte("\n")))
				pieces = append(pieces, string(line))
			}
			for rest := data; len(rest) > 0; {
				n := min(step, len(rest))
				s.feed(rest[:n], emit)
				rest = rest[n:]
			}
			s.finish(emit)
			return pieces, back
		}
		var file bytes.Buffer
		w := &Writer{file: nopCloser{&file}}
		require.NoError(t, w.Copy(Stderr, bytes.NewReader(data)))
		require.Equal(t, Offset{Stderr: int64(len(data))}, w.Written())
		require.Equal(t, w.Written(), Offset{}.Plus(&file))

		whole, back := split(len(data) + 1)
		require.Equal(t, string(data), string(back))
		parts, _ := split(int(step) + 1)
		require.Equal(t, whole, parts)
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A full disk must not block a container.
func TestALogThatCannotBeWrittenIsReadOn(t *testing.T) {
	full := errors.New("disk full")
	once := full
	var got bytes.Buffer
	w := &Writer{file: fails{&got, &once}}
	src := strings.NewReader("one\ntwo\n")
	require.ErrorIs(t, w.Copy(Stdout, src), full)
	assert.Zero(t, src.Len())
	assert.Contains(t, got.String(), "two")
}

// fails is a file whose first write fails.
type fails struct {
	*bytes.Buffer
	err *error
}

func (f fails) Close() error { return nil }
func (f fails) Write(p []byte) (int, error) {
	if err := *f.err; err != nil {
		*f.err = nil
		return 0, err
	}
	return f.Buffer.Write(p)
}

type logFile struct{ bytes.Buffer }

func (*logFile) Close() error { return nil }

// A caller that sees the new file may compress or remove the old one.
func TestNothingIsWrittenToTheOldLogOnceTheNewOneExists(t *testing.T) {
	before, after := new(logFile), new(logFile)
	opened := []*logFile{before, after}
	var late sync.WaitGroup
	var w *Writer
	w, err := NewWriter(func() (io.WriteCloser, error) {
		file := opened[0]
		opened = opened[1:]
		if file == after {
			late.Go(func() { assert.NoError(t, w.Copy(Stdout, strings.NewReader("late\n"))) })
			time.Sleep(20 * time.Millisecond) // in which the entry is written, if nothing prevents it
		}
		return file, nil
	}, Offset{})
	require.NoError(t, err)
	require.NoError(t, w.Copy(Stdout, strings.NewReader("early\n")))
	written, err := w.Reopen()
	require.NoError(t, err)
	assert.Equal(t, Offset{Stdout: 6}, written)
	late.Wait()
	assert.Contains(t, before.String(), "early")
	assert.NotContains(t, before.String(), "late")
	assert.Contains(t, after.String(), "late")
}
