package record

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// magic is the first line of each file. Its number is the version of the format.
const magic = "kubeparts recording 1\n"

// Limits of the format, for writers and readers.
const (
	maxFrame   = 16 << 20 // bytes of a frame in JSON
	prefixSize = 12       // bytes of compressed size, size and checksum of a frame
	maxSlots   = 1024     // calls that later frames refer to
	maxKept    = 32 << 20 // bytes of these calls
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	// Frames with these errors are left out; the file is unchanged.
	errTooLarge = errors.New("frame too large")
	errEncoding = errors.New("frame not encodable")
)

// A frameWriter writes one file. Frames are compressed as one DEFLATE stream, which is flushed after
// each frame, so that a file is readable up to the last complete frame and the frames share a
// dictionary.
type frameWriter struct {
	out        io.Writer
	written    int64 // bytes of the file
	text       bytes.Buffer
	compressed bytes.Buffer
	deflate    *flate.Writer
}

// newFrameWriter writes the magic.
func newFrameWriter(out io.Writer) (*frameWriter, error) {
	w := &frameWriter{out: out}
	w.deflate, _ = flate.NewWriter(&w.compressed, level) // the level is valid
	n, err := io.WriteString(out, magic)
	w.written = int64(n)
	return w, err
}

// level of the compression; docs/recording.md has the measurement that it was chosen by. With the levels up to 6,
// Go 1.27 finds no matches in earlier frames.
const level = 7

// write appends a frame. It returns errTooLarge if the frame exceeds maxFrame or maxObjects, and an errEncoding if it
// has no JSON form; nothing is written then. After another error the file must not be written to.
func (w *frameWriter) write(f Frame) error {
	w.text.Reset()
	encoder := json.NewEncoder(&w.text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("%w: %w", errEncoding, err)
	}
	text := bytes.TrimSuffix(w.text.Bytes(), []byte("\n"))
	if len(text) > maxFrame || objects(text) > maxObjects {
		return errTooLarge
	}
	w.compressed.Reset()
	w.compressed.Write(make([]byte, prefixSize))
	_, err := w.deflate.Write(text)
	if err = errors.Join(err, w.deflate.Flush()); err != nil {
		return fmt.Errorf("compress frame: %w", err)
	}
	b := w.compressed.Bytes()
	binary.LittleEndian.PutUint32(b, uint32(len(b)-prefixSize))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(text)))
	binary.LittleEndian.PutUint32(b[8:], checksum(b))
	n, err := w.out.Write(b)
	w.written += int64(n)
	return err
}

// checksum returns the checksum of a frame with its prefix: of the two sizes and the data.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:8], castagnoli), castagnoli, b[prefixSize:])
}
