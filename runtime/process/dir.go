package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// A stateDir is Config.Dir:
//
//	version                      formatVersion
//	lock                         locked by the agent that uses the directory
//	sandboxes/<id>/sandbox.json
//	containers/<id>/container.json
//	containers/<id>/process.json see processRecord
//	containers/<id>/alive        a FIFO: it has a writer while the supervisor lives
//	containers/<id>/supervisor.log
//	containers/<id>/work/        the default working directory
//	exits/<id>.json              one per terminated container, in one directory to watch
//	tmp/                         files being written or removed; emptied by Open
//
// Directories of sandboxes and containers are created and removed, and files
// replaced, by a rename, so that a kill between two system calls leaves no
// partial state. Nothing is fsynced: after a crash of the host no container
// runs.
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

// prepare creates the layout in an empty directory. It returns an error for a
// directory of another version or with other files. The caller must hold the
// lock.
func (r *Runtime) prepare(ctx context.Context) error {
	d := r.dir
	data, err := os.ReadFile(d.path("version"))
	switch {
	case err == nil:
		if got, expected := strings.TrimSpace(string(data)), fmt.Sprint(formatVersion); got != expected {
			return fmt.Errorf("state directory %s has format %q, expected %q", d, got, expected)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		entries, err := os.ReadDir(string(d))
		if err != nil {
			return err
		}
		for _, e := range entries {
			// A kill during the first start leaves these two.
			if e.Name() != "lock" && e.Name() != "tmp" {
				return fmt.Errorf("state directory %s contains %q but no file \"version\"", d, e.Name())
			}
		}
	}
	r.clear(ctx, d.path("tmp"))
	// Search permission is for the working directories of other users. Records
	// are 0600 because environments contain secrets.
	for _, name := range []string{"tmp", "sandboxes", "containers", "exits"} {
		if err := os.MkdirAll(d.path(name), 0o711); err != nil {
			return err
		}
	}
	return d.replace(d.path("tmp"), d.path("version"), fmt.Appendln(nil, formatVersion))
}

// write replaces a record. tmp is a directory on the same file system.
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

// discard renames a directory into tmp and returns its new path, which the caller passes to
// clear. The path is empty if the directory does not exist.
func (d stateDir) discard(path string) (gone string, err error) {
	gone = d.path("tmp", filepath.Base(path)+".gone")
	switch err := os.Rename(path, gone); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return gone, nil
}

// clear removes a directory below tmp, or tmp, if path is not empty. Containers have written
// what is in it: a failure is logged only, and Open tries again.
func (r *Runtime) clear(ctx context.Context, path string) {
	if path == "" {
		return
	}
	if err := untrusted.RemoveTree(ctx, path); err != nil {
		r.log.Warn("Failed to remove the files of a removed container; will retry at the next start", "path", path, "err", err)
	}
}

// readRecord reads the record of id. It returns a corruptError if the record
// cannot be decoded or has another ID.
func readRecord[T record](path, id string) (T, error) {
	var none T
	data, err := os.ReadFile(path)
	if err != nil {
		return none, err
	}
	rec, err := decode[T](data)
	if err != nil {
		return none, &corruptError{Path: path, Err: err}
	}
	if got := recordID(rec); got != id {
		return none, &corruptError{Path: path, Err: fmt.Errorf("has id %s", got)}
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

// A corruptError reports a state file that cannot be decoded. The file is left
// unchanged.
type corruptError struct {
	Path string
	Err  error
}

func (e *corruptError) Error() string { return fmt.Sprintf("corrupt state file %s: %v", e.Path, e.Err) }
func (e *corruptError) Unwrap() error { return e.Err }

// isCorrupt reports whether a record was read but could not be decoded.
func isCorrupt(err error) bool {
	_, ok := errors.AsType[*corruptError](err)
	return ok
}

// newID returns a random identifier.
func newID() string {
	var b [idLength / 2]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
