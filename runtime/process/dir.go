package process

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A stateDir is Config.Dir:
//
//	version                      formatVersion
//	lock                         held by the agent that uses the directory
//	sandboxes/<id>/sandbox.json
//	containers/<id>/container.json
//	containers/<id>/process.json see processRecord
//	containers/<id>/alive        a FIFO: it has a writer while the supervisor lives
//	containers/<id>/supervisor.log
//	containers/<id>/work/        the default working directory
//	exits/<id>.json              one per container that ended: one directory to watch
//	tmp/                         what is being made or removed; emptied by New
//
// A directory of a sandbox or container appears and vanishes in one rename, a
// file is replaced in one, so that a kill between two system calls never
// leaves half of either. Nothing is fsynced: after a crash of the host nothing
// runs that a record could be about.
type stateDir string

func (d stateDir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

func (d stateDir) sandbox(id string) string   { return d.path("sandboxes", id) }
func (d stateDir) container(id string) string { return d.path("containers", id) }
func (d stateDir) exit(id string) string      { return d.path("exits", id+".json") }
func (d stateDir) alive(id string) string     { return d.path("containers", id, "alive") }

func (d stateDir) containerFile(id string) string { return d.path("containers", id, "container.json") }
func (d stateDir) processFile(id string) string   { return d.path("containers", id, "process.json") }
func (d stateDir) supervisorLog(id string) string { return d.path("containers", id, "supervisor.log") }

// prepare makes the layout in an empty directory, and refuses one of another
// version or one that holds something else. The caller holds the lock.
func (d stateDir) prepare() error {
	data, err := os.ReadFile(d.path("version"))
	switch {
	case err == nil:
		if got, want := strings.TrimSpace(string(data)), fmt.Sprint(formatVersion); got != want {
			return fmt.Errorf("state directory %s has format %q, this program reads %q", d, got, want)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		entries, err := os.ReadDir(string(d))
		if err != nil {
			return err
		}
		for _, e := range entries {
			// A kill during the very first start leaves these two.
			if e.Name() != "lock" && e.Name() != "tmp" {
				return fmt.Errorf("state directory %s is not empty and not one of this package: it holds %q and no file \"version\"", d, e.Name())
			}
		}
	}
	if err := os.RemoveAll(d.path("tmp")); err != nil {
		return err
	}
	// Others may pass through, for work directories of other users; they may
	// not list, and each record is 0600 as environments hold secrets.
	for _, name := range []string{"tmp", "sandboxes", "containers", "exits"} {
		if err := os.MkdirAll(d.path(name), 0o711); err != nil {
			return err
		}
	}
	return d.replace(d.path("tmp"), d.path("version"), fmt.Appendln(nil, formatVersion))
}

// write replaces a record. tmp is a directory of the same file system.
func (d stateDir) write(tmp, path string, rec any) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return d.replace(tmp, path, append(data, '\n'))
}

func (d stateDir) replace(tmp, path string, data []byte) error {
	f, err := os.CreateTemp(tmp, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// discard makes a directory vanish at once and removes it after.
func (d stateDir) discard(path string) error {
	gone := d.path("tmp", filepath.Base(path)+".gone")
	if err := os.Rename(path, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return os.RemoveAll(gone)
}

// readRecord reads a record that belongs to id; its errors name the file.
func readRecord[T record](path, id string) (T, error) {
	var none T
	data, err := os.ReadFile(path)
	if err != nil {
		return none, err
	}
	rec, err := decode[T](data)
	if err != nil {
		return none, &CorruptError{Path: path, Err: err}
	}
	if got := recordID(rec); got != id {
		return none, &CorruptError{Path: path, Err: fmt.Errorf("is about %s", got)}
	}
	return rec, nil
}

func recordID[T record](rec T) string {
	switch rec := any(rec).(type) {
	case sandboxRecord:
		return rec.ID
	case containerRecord:
		return rec.ID
	case processRecord:
		return rec.ID
	case exitRecord:
		return rec.ID
	}
	return ""
}

// A CorruptError is about a state file that cannot be read as what it should
// be. The file is left as it was found.
type CorruptError struct {
	Path string
	Err  error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("corrupt state file %s: %v", e.Path, e.Err) }
func (e *CorruptError) Unwrap() error { return e.Err }

// isCorrupt tells a record that is wrong from one that could not be read now.
func isCorrupt(err error) bool {
	_, ok := errors.AsType[*CorruptError](err)
	return ok
}

// newID returns an identifier that was never used.
func newID() string {
	var b [idLength / 2]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
