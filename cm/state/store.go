package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// A Store contains one checkpoint.
type Store interface {
	// Load returns the checkpoint; an error that is fs.ErrNotExist if there is none.
	Load() ([]byte, error)

	// Save replaces the checkpoint atomically: after a crash the store contains the old
	// or the new one.
	Save(record []byte) error

	// Keep moves the checkpoint aside for inspection. It replaces the one that was moved
	// aside before. It is not an error if there is no checkpoint.
	Keep() error
}

// Backup is the suffix of the file to which Keep of a [File] moves the checkpoint.
const Backup = ".bak"

// maxRecord is the maximum size of a checkpoint in bytes.
const maxRecord = 16 << 20

// File returns a store in the file at path, whose directory must exist. Errors contain
// the path.
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

// Memory is a store in memory. The zero value is empty. Not safe for concurrent use.
type Memory struct {
	Record []byte // nil: none
	Kept   []byte // moved aside by Keep
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

// Restore decodes the checkpoint of a store. found is false if there is none. A
// checkpoint that cannot be read or decoded is logged and moved aside, and the zero value
// is returned. If refuse is not nil, it is called with the result of decode first, and
// Restore returns its error without changing the store.
func Restore[T any](s Store, decode func([]byte) (T, error), refuse func(T, error) error, log *slog.Logger) (checkpoint T, found bool, err error) {
	var none T
	data, err := s.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return none, false, nil
	}
	if err == nil {
		checkpoint, err = decode(data)
	}
	if refuse != nil {
		if refused := refuse(checkpoint, err); refused != nil {
			return none, true, refused
		}
	}
	if err == nil {
		return checkpoint, true, nil
	}
	log.Error("Failed to read checkpoint; moving it aside and rebuilding the state", "checkpoint", fmt.Sprint(s), "err", err)
	if err := s.Keep(); err != nil {
		return none, true, fmt.Errorf("move checkpoint aside: %w", err)
	}
	return none, true, nil
}

// Replace saves a checkpoint that differs from the restored one. If used is true, the
// restored one was usable, and Replace logs that and moves it aside.
func Replace(s Store, checkpoint []byte, used bool, log *slog.Logger) error {
	if used {
		log.Warn("Repaired checkpoint; moving the previous one aside", "checkpoint", fmt.Sprint(s))
		if err := s.Keep(); err != nil {
			return fmt.Errorf("move checkpoint aside: %w", err)
		}
	}
	if err := s.Save(checkpoint); err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	return nil
}
