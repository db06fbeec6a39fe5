// Package checkpoint keeps small records in files that are either whole or not
// there: JSON with a checksum, replaced in one step.
package checkpoint

import (
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

// Temporary is the ending of the file in which a record is prepared. One that
// is left over means that a write was cut short; the next write takes its
// place, and nobody needs to read it.
const Temporary = ".tmp"

// MaxSize is the largest file of [Write] and [Read], in bytes.
const MaxSize = 16 << 20

// ErrCorrupt says that a file is there and is not what Write made of a value:
// it was cut short, changed by hand, or belongs to something else.
var ErrCorrupt = errors.New("corrupt record")

// ErrTooLarge is the error for a record that exceeds the limit.
var ErrTooLarge = errors.New("record too large")

// envelope is what a file holds.
type envelope struct {
	// Checksum is the CRC-32C of the bytes of Data, in hexadecimal.
	Checksum string `json:"checksum"`

	Data json.RawMessage `json:"data"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli))
}

// Write makes the file at path hold v. Whoever reads it, and whatever happens
// meanwhile (a crash, a power cut, a full disk), finds the old record or the
// new one in full: it is written beside, synced, and put in place by a rename,
// which is synced too. The directory has to exist. The file is readable by its
// owner alone.
//
// A record that would exceed MaxSize is not written: the old one stays, and the error
// is [ErrTooLarge].
//
// Calls for different files may be made at once, those for one file may not.
// Errors name the file.
func Write(path string, v any) error { return WriteMax(path, v, MaxSize) }

// WriteMax is Write for files of at most maxSize bytes, which ReadMax reads with the
// same limit.
func WriteMax(path string, v any, maxSize int) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("checkpoint: encode %s: %w", path, err)
	}
	file, err := json.Marshal(envelope{Checksum: checksum(data), Data: data})
	if err != nil {
		return fmt.Errorf("checkpoint: encode %s: %w", path, err)
	}
	if len(file) > maxSize {
		return fmt.Errorf("checkpoint: write %s: %w: %d bytes, the limit is %d", path, ErrTooLarge, len(file), maxSize)
	}
	if err := Replace(path, file, 0o600); err != nil {
		return fmt.Errorf("checkpoint: write %s: %w", path, err)
	}
	return nil
}

// Replace is Write for records whose form is somebody else's: the file has
// these bytes, and these permissions whatever the umask. Errors are those of
// the operating system.
func Replace(path string, data []byte, perm fs.FileMode) error {
	temp := path + Temporary
	err := writeSynced(temp, data, perm)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Read fills v, a pointer, with the record at path. Without a file the error is
// fs.ErrNotExist, with one that Write has not made it is [ErrCorrupt], with one of
// more than MaxSize bytes [ErrTooLarge]; v is not to be used then. Errors name the file.
//
// Fields of the record that v does not have are ignored, and fields that the
// record does not have stay as they are: an older program reads the records of
// a newer one, and the other way round.
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
	var e envelope
	if err := json.Unmarshal(file, &e); err != nil {
		return fmt.Errorf("checkpoint: read %s: %w: %w", path, ErrCorrupt, err)
	}
	if e.Data == nil || e.Checksum == "" {
		return fmt.Errorf("checkpoint: read %s: %w: it lacks data or checksum", path, ErrCorrupt)
	}
	if got := checksum(e.Data); got != e.Checksum {
		return fmt.Errorf("checkpoint: read %s: %w: checksum is %s and should be %s", path, ErrCorrupt, got, e.Checksum)
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("checkpoint: read %s: %w: %w", path, ErrCorrupt, err)
	}
	return nil
}

func readAll(path string, maxSize int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(maxSize)+1))
}

func writeSynced(path string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Chmod(path, perm)
}

// syncDir makes a rename in dir last. Windows has no such call, and does not
// need it.
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
