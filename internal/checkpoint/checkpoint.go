// Package checkpoint stores small records in files: JSON with a checksum, also in the formats of a
// kubelet. A file contains the last complete record, whenever the process or the machine stops.
package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Temporary is the suffix of the file to which a record is written before it is renamed.
// Such a file remains after an interrupted write; the next write replaces it, and it must
// not be read.
const Temporary = ".tmp"

// MaxSize is the largest file of [Write] and [Read], in bytes.
const MaxSize = 16 << 20

// ErrCorrupt is the error for a file without an intact record: it is truncated, was edited, or
// belongs to another program.
var ErrCorrupt = errors.New("corrupt record")

// ErrTooLarge is the error for a record that exceeds the limit.
var ErrTooLarge = errors.New("record too large")

// envelope is a record in a file.
type envelope struct {
	// Checksum is the CRC-32C of the bytes of Data, in hexadecimal.
	Checksum string `json:"checksum"`

	Data json.RawMessage `json:"data"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli))
}

// Write stores v in the file at path. Readers find the complete old record or the complete
// new one, also after a crash, a power failure or on a full disk: the record is written to
// a temporary file, synced, and renamed, and the rename is synced. The directory must
// exist. Only the owner can read the file.
//
// A record that would exceed MaxSize is not written: the old one remains, and the error is
// [ErrTooLarge].
//
// Write must not be called concurrently for the same file. Errors name the file.
func Write(path string, v any) error { return WriteMax(path, v, MaxSize) }

// WriteMax is Write for files of at most maxSize bytes, which ReadMax reads with the
// same limit.
func WriteMax(path string, v any, maxSize int) error {
	return encodeTo(path, v, maxSize, Replace)
}

// WriteUnsynced is Write without waiting for the disk, and in most cases without a new file: the
// record is appended to the file, in a line of its own. The last intact line counts, so that readers
// find the complete old record or the complete new one, also if this process is killed at any time.
// After a power failure or a crash of the system, a record of the last minute may be lost; the file
// then has the one before it, is missing, or is [ErrCorrupt]. It is for records that are then not
// needed, because no process has survived, or that can be derived.
func WriteUnsynced(path string, v any) error { return encodeTo(path, v, MaxSize, add) }

// encodeTo encodes v and passes the file to replace.
func encodeTo(path string, v any, maxSize int, replace func(path string, data []byte, perm fs.FileMode) error) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("checkpoint: encode %s: %w", path, err)
	}
	file := appendEnvelope(make([]byte, 0, len(data)+envelopeSize), data)
	if len(file) > maxSize {
		return fmt.Errorf("checkpoint: write %s: %w: %d bytes, the limit is %d", path, ErrTooLarge, len(file), maxSize)
	}
	if err := replace(path, file, 0o600); err != nil {
		return fmt.Errorf("checkpoint: write %s: %w", path, err)
	}
	return nil
}

// envelopeStart begins each encoded envelope.
const envelopeStart = `{"checksum":"`

// envelopeSize is at least the size of an encoded envelope without its data.
const envelopeSize = 64

// appendEnvelope appends the line with the encoded envelope of data, which is encoded JSON.
func appendEnvelope(file, data []byte) []byte {
	file = append(append(file, envelopeStart...), checksum(data)...)
	file = append(append(file, `","data":`...), data...)
	return append(file, "}\n"...)
}

// Replace is Write for files with another format: the file has these bytes, and these
// permissions regardless of the umask. It returns the errors of the operating system.
func Replace(path string, data []byte, perm fs.FileMode) error {
	if err := replace(path, data, perm, (*os.File).Sync); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// maxAppended is the size up to which records are appended to a file, in bytes.
const maxAppended = 32 << 10

// add appends data to the file at path, or replaces a file that would become too large.
func add(path string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if size := info.Size(); size > 0 {
		if size+int64(len(data)) >= maxAppended {
			if err := f.Close(); err != nil {
				return err
			}
			return replace(path, data, perm, func(*os.File) error { return nil })
		}
		data = append([]byte{'\n'}, data...) // the last line may be incomplete
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// replace writes a temporary file, calls sync with it, and renames it to path.
func replace(path string, data []byte, perm fs.FileMode, sync func(*os.File) error) error {
	temp := path + Temporary
	err := writeFile(temp, data, perm, sync)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// Read decodes the last intact record of the file at path into v, a pointer. It returns fs.ErrNotExist
// if there is no file, [ErrCorrupt] if it has no intact record of Write or WriteUnsynced, and
// [ErrTooLarge] if it has more than MaxSize bytes; v must not be used then. Errors name the file.
//
// Fields of the record that v does not have are ignored, and fields that the record does
// not have are left unchanged, so that older and newer programs read each other's records.
func Read(path string, v any) error { return ReadMax(path, v, MaxSize) }

// ReadMax is Read for files of at most maxSize bytes.
func ReadMax(path string, v any, maxSize int) error {
	file, err := readAll(path, maxSize)
	if err != nil {
		return fmt.Errorf("checkpoint: read %s: %w", path, err)
	}
	if len(file) > maxSize {
		return fmt.Errorf("checkpoint: read %s: %w: more than %d bytes", path, ErrTooLarge, maxSize)
	}
	data, err := lastIntact(file)
	if err != nil {
		return fmt.Errorf("checkpoint: read %s: %w: %w", path, ErrCorrupt, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("checkpoint: read %s: %w: %w", path, ErrCorrupt, err)
	}
	return nil
}

// lastIntact returns the data of the last line with a complete record; without any, the error of the
// last line.
func lastIntact(file []byte) (data []byte, err error) {
	for rest, more := file, true; more; {
		line := rest
		i := bytes.LastIndexByte(rest, '\n')
		if more = i >= 0; more {
			line, rest = rest[i+1:], rest[:i]
		}
		data, lineErr := parse(line)
		if lineErr == nil {
			return data, nil
		}
		if err == nil && len(line) > 0 {
			err = lineErr
		}
	}
	if err == nil {
		err = errors.New("the file is empty")
	}
	return nil, err
}

// parse returns the data of an encoded envelope.
func parse(line []byte) ([]byte, error) {
	if !bytes.HasPrefix(line, []byte(envelopeStart)) {
		return nil, errors.New("no record")
	}
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, err
	}
	if e.Data == nil || e.Checksum == "" {
		return nil, errors.New("data or checksum is missing")
	}
	if got := checksum(e.Data); got != e.Checksum {
		return nil, fmt.Errorf("checksum is %s, expected %s", got, e.Checksum)
	}
	return e.Data, nil
}

func readAll(path string, maxSize int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(maxSize)+1))
}

func writeFile(path string, data []byte, perm fs.FileMode, sync func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Chmod(path, perm)
}

// syncDir makes a rename in dir durable. Windows has no such call and does not require it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
