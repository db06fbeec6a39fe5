package state

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// A Store holds one record.
type Store interface {
	// Load returns the record; an error that is fs.ErrNotExist if there is none.
	Load() ([]byte, error)

	// Save replaces the record; it is there in full, or the one before is.
	Save(record []byte) error

	// Keep puts the record aside for people to look at, in the place of one that
	// was put aside before. It may have no record.
	Keep() error
}

// Backup is the ending of the file that [File] keeps a record in that was put
// aside.
const Backup = ".bak"

// maxRecord is the largest record, in bytes.
const maxRecord = 16 << 20

// File returns a store in the file of that path. Its directory has to exist.
// Errors name the file.
func File(path string) Store { return file(path) }

type file string

// Load implements [Store].
func (f file) Load() ([]byte, error) {
	in, err := os.Open(string(f))
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("more than %d bytes", maxRecord)
	}
	if err != nil {
		return nil, fmt.Errorf("state: read %s: %w", string(f), err)
	}
	return data, nil
}

// Save implements [Store].
func (f file) Save(record []byte) error {
	if len(record) > maxRecord {
		return fmt.Errorf("state: write %s: %d bytes, the limit is %d", string(f), len(record), maxRecord)
	}
	if err := checkpoint.Replace(string(f), record, 0o600); err != nil {
		return fmt.Errorf("state: write %s: %w", string(f), err)
	}
	return nil
}

// Keep implements [Store].
func (f file) Keep() error {
	err := os.Rename(string(f), string(f)+Backup)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

func (f file) String() string { return string(f) }

// Memory is a store that forgets with the process. The zero value is empty.
type Memory struct {
	Record []byte // nil: none
	Kept   []byte // what was put aside
}

// Load implements [Store].
func (m *Memory) Load() ([]byte, error) {
	if m.Record == nil {
		return nil, fmt.Errorf("state: %w", fs.ErrNotExist)
	}
	return m.Record, nil
}

// Save implements [Store].
func (m *Memory) Save(record []byte) error {
	m.Record = record
	return nil
}

// Keep implements [Store].
func (m *Memory) Keep() error {
	if m.Record != nil {
		m.Record, m.Kept = nil, m.Record
	}
	return nil
}

func (m *Memory) String() string { return "memory" }

// Checksum is the sum of the kubelet's state files: FNV-1a, 32 bits, over the text
// that its dump of the record has.
func Checksum(dump string) uint64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, dump)
	return uint64(h.Sum32())
}
