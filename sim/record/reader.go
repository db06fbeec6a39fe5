package record

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Errors of a [DamageError].
var (
	// ErrTruncated reports that a file ends without an [End]: it is still being written, or the
	// recorder was killed.
	ErrTruncated = errors.New("truncated")

	// ErrCorrupt reports that a file is not a recording, or was changed.
	ErrCorrupt = errors.New("corrupt")
)

// A DamageError reports where a file stops being readable. It wraps ErrTruncated or ErrCorrupt.
type DamageError struct {
	Offset int64 // of the damaged frame in the file, in bytes
	Frame  int   // its number in the file, from 0: the header
	Err    error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("frame %d at offset %d: %v", e.Frame, e.Offset, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// Read returns the frames of a file. If the file is damaged, the last pair has a [*DamageError], after
// all frames before the damage; if it cannot be read, the error of r. Memory is bounded, whatever
// the file contains: 16 MiB and 262,144 objects per frame, and 32 MiB of answers that later frames refer to.
func Read(r io.Reader) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		d := &frameReader{in: bufio.NewReader(r), slots: map[int]Call{}}
		for {
			f, err := d.next()
			if err == io.EOF {
				return
			}
			if errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) {
				err = &DamageError{Offset: d.frame, Frame: d.count, Err: err}
			}
			if !yield(f, err) || err != nil {
				return
			}
			d.count++
		}
	}
}

// ReadFiles returns the frames of files, in this order. Errors name the file. It stops at the first
// one.
func ReadFiles(paths ...string) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for _, path := range paths {
			if !readFile(path, yield) {
				return
			}
		}
	}
}

// readFile reports whether to continue with the next file.
func readFile(path string, yield func(Frame, error) bool) bool {
	file, err := os.Open(path)
	if err != nil {
		yield(Frame{}, err)
		return false
	}
	defer file.Close()
	for f, err := range Read(file) {
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		if !yield(f, err) || err != nil {
			return false
		}
	}
	return true
}

// Files returns the files of recordings in a directory, the oldest first.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && filepath.Ext(e.Name()) == extension {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(files) // names begin with the time
	return files, nil
}

// A frameReader reads one file.
type frameReader struct {
	in         *bufio.Reader
	offset     int64 // of what is read next
	frame      int64 // offset of the current frame
	count      int
	ended      bool
	compressed bytes.Buffer // data that inflate has not consumed
	inflate    io.Reader
	slots      map[int]Call
	kept       int // bytes of the calls in slots
}

// next returns io.EOF after the End.
func (d *frameReader) next() (Frame, error) {
	if d.offset == 0 {
		if err := d.readMagic(); err != nil {
			return Frame{}, err
		}
	}
	text, err := d.readFrame()
	switch {
	case err == io.EOF && d.ended:
		return Frame{}, io.EOF
	case err == io.EOF:
		return Frame{}, fmt.Errorf("%w: no end frame", ErrTruncated)
	case err != nil:
		return Frame{}, err
	case d.ended:
		return Frame{}, fmt.Errorf("%w: data after the end frame", ErrCorrupt)
	}
	if n := objects(text); n > maxObjects {
		return Frame{}, fmt.Errorf("%w: a frame of %d objects", ErrCorrupt, n)
	}
	var f Frame
	if err := json.Unmarshal(text, &f); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if f.kinds() != 1 {
		return Frame{}, fmt.Errorf("%w: %d kinds", ErrCorrupt, f.kinds())
	}
	if (d.count == 0) != (f.Header != nil) {
		return Frame{}, fmt.Errorf("%w: the first frame, and no other one, must be a header", ErrCorrupt)
	}
	d.ended = f.End != nil
	return f, d.resolve(f.Call)
}

// maxObjects is the maximum number of objects of a frame that are decoded: each may need a thousand times
// the memory of its text.
const maxObjects = 256 << 10

// objects returns about the number of objects that decoding a frame allocates, at least. The messages of
// a call and the content of a file are not decoded.
func objects(text []byte) int {
	n := bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("null"))
	if n <= maxObjects {
		return n
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(text, &raw) != nil {
		return n
	}
	for _, key := range []string{"call", "event"} {
		n -= bytes.Count(raw[key], []byte("{")) + bytes.Count(raw[key], []byte("null"))
	}
	return n
}

func (d *frameReader) readMagic() error {
	b := make([]byte, len(magic))
	n, err := io.ReadFull(d.in, b)
	if !bytes.Equal(b[:n], []byte(magic)[:n]) {
		return fmt.Errorf("%w: the file does not begin with %q", ErrCorrupt, magic)
	}
	d.offset += int64(n)
	return truncated(err, io.EOF)
}

// readFrame returns the text of the next frame, and io.EOF if there is none.
func (d *frameReader) readFrame() ([]byte, error) {
	d.frame = d.offset
	prefix := make([]byte, prefixSize)
	if _, err := io.ReadFull(d.in, prefix); err != nil {
		return nil, truncated(err, nil)
	}
	size, textSize := binary.LittleEndian.Uint32(prefix), binary.LittleEndian.Uint32(prefix[4:])
	if size > 2*maxFrame || textSize > maxFrame {
		return nil, fmt.Errorf("%w: size %d, uncompressed %d", ErrCorrupt, size, textSize)
	}
	var data bytes.Buffer // grows with the data, not with the size in the prefix
	if _, err := io.CopyN(&data, d.in, int64(size)); err != nil {
		return nil, truncated(err, io.EOF)
	}
	if checksum(append(prefix, data.Bytes()...)) != binary.LittleEndian.Uint32(prefix[8:]) {
		return nil, fmt.Errorf("%w: wrong checksum", ErrCorrupt)
	}
	d.offset += prefixSize + int64(size)
	return d.decompress(data.Bytes(), int64(textSize))
}

// decompress returns the text of a frame, which must be of this size.
func (d *frameReader) decompress(data []byte, size int64) ([]byte, error) {
	const most = 16 // bytes of the end of a flush, which the decompressor reads with the next frame
	d.compressed.Write(data)
	if d.inflate == nil {
		d.inflate = flate.NewReader(&d.compressed)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, d.inflate, size); err != nil {
		return nil, fmt.Errorf("%w: decompress: %w", ErrCorrupt, err)
	}
	if d.compressed.Len() > most {
		return nil, fmt.Errorf("%w: the frame has more data than text", ErrCorrupt)
	}
	return text.Bytes(), nil
}

// resolve keeps a call in its slot, or sets the messages of one that refers to a slot.
func (d *frameReader) resolve(c *Call) error {
	switch {
	case c == nil:
		return nil
	case c.Same != 0:
		kept, ok := d.slots[c.Same]
		if !ok {
			return fmt.Errorf("%w: slot %d is empty", ErrCorrupt, c.Same)
		}
		c.Request, c.Answer = kept.Request, kept.Answer
	case c.Slot != 0:
		d.kept += c.size() - d.slots[c.Slot].size()
		if c.Slot < 0 || c.Slot > maxSlots || d.kept > maxKept {
			return fmt.Errorf("%w: slot %d, %d bytes in slots", ErrCorrupt, c.Slot, d.kept)
		}
		d.slots[c.Slot] = *c
	}
	return nil
}

// size returns the number of bytes of the messages.
func (c Call) size() int { return len(c.Request) + len(c.Answer) }

// truncated returns err, and ErrTruncated for an end of the file within a frame; other is a
// further error with this meaning.
func truncated(err, other error) error {
	if err != nil && (errors.Is(err, io.ErrUnexpectedEOF) || err == other) {
		return fmt.Errorf("%w: the file ends within it", ErrTruncated)
	}
	return err
}

// kinds returns the number of fields that are set besides At.
func (f Frame) kinds() (n int) {
	for _, set := range []bool{
		f.Header != nil, f.Pods != nil, f.Call != nil, f.Event != nil, f.Probe != nil, f.Operation != nil, f.Status != nil,
		f.Draw != nil, f.Agent != nil, f.State != nil, f.Pause != nil, f.Dropped != nil, f.End != nil,
	} {
		if set {
			n++
		}
	}
	return n
}
