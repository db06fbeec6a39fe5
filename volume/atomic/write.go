package atomic

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	dataName = "..data"     // the link to the current files
	tempName = "..data_tmp" // its replacement, renamed to it
	stamp    = "..2006_01_02_15_04_05."
)

// generation matches the names of the directories that contain the files.
var generation = regexp.MustCompile(`^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$`)

// Options are the options of [Write]. The zero value is valid.
type Options struct {
	// SetPerms sets the owners and modes of the files in dir, for example for a pod's
	// fsGroup, before they become visible. It may be nil.
	SetPerms func(dir string) error

	// IgnoreMode contains the mode bits that SetPerms may add. They are ignored when Write
	// compares files.
	IgnoreMode fs.FileMode
}

// Write replaces the files that an earlier Write wrote to dir, which must exist, by payload; other files
// are not changed. It reports whether the visible files changed.
//
// After an error the old files are visible, unless only the removal of old files failed. The call must
// then be repeated.
func Write(dir string, payload Payload, opt Options) (changed bool, err error) {
	return write(dir, payload, opt, func(string) {})
}

// write is Write. It calls step before each system call that changes something.
func write(dir string, payload Payload, opt Options, step func(call string)) (changed bool, err error) {
	files, err := payload.clean()
	if err != nil {
		return false, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, fmt.Errorf("atomic: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()

	w := writer{Root: root, dir: dir, step: step}
	changed, err = w.write(files, opt)
	if err != nil {
		return changed, fmt.Errorf("atomic: write to %s: %w", dir, err)
	}
	return changed, nil
}

// Current returns the directory that contains the current files of dir. It returns an error that is
// fs.ErrNotExist if nothing has been written.
func Current(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("atomic: %w", err)
	}
	defer root.Close()
	w := writer{Root: root, dir: dir}
	switch name, err := w.current(); {
	case err != nil:
		return "", fmt.Errorf("atomic: %w", err)
	case name == "":
		return "", fmt.Errorf("atomic: %s: nothing written yet: %w", dir, fs.ErrNotExist)
	default:
		return filepath.Join(dir, name), nil
	}
}

// A writer writes to one directory; its Root prevents access outside it.
type writer struct {
	*os.Root
	dir  string
	step func(call string)
}

func (w writer) write(files Payload, opt Options) (changed bool, err error) {
	old, err := w.current()
	if err != nil {
		return false, err
	}
	if old != "" && w.contains(old, files, opt.IgnoreMode) {
		err := w.link(files)
		return false, errors.Join(err, w.clean(old, files))
	}
	fresh, err := w.fill(files, opt)
	if err == nil {
		err = w.replace(fresh)
	}
	if err != nil {
		return false, errors.Join(err, w.removeAll(fresh))
	}
	err = w.link(files)
	return true, errors.Join(err, w.clean(fresh, files))
}

// current returns the name of the directory that "..data" points to; "" if there is no such link. It
// returns an error for a link that Write did not create, whose target must not be removed.
func (w writer) current() (string, error) {
	switch target, err := w.Readlink(dataName); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !generation.MatchString(target):
		return "", fmt.Errorf("%s points to %q, which is not a directory of this package", dataName, target)
	default:
		return target, nil
	}
}

// fill creates a new directory with the files.
func (w writer) fill(files Payload, opt Options) (name string, err error) {
	if name, err = w.newDir(); err != nil {
		return name, err
	}
	made := map[string]bool{".": true}
	for _, p := range files.sorted() {
		if dir := path.Dir(p); !made[dir] {
			made[dir] = true
			w.step("mkdir")
			if err := w.MkdirAll(path.Join(name, dir), 0o755); err != nil {
				return name, err
			}
			for d := dir; d != "."; d = path.Dir(d) { // regardless of the umask
				w.step("chmod directory")
				if err := w.Chmod(path.Join(name, d), 0o755); err != nil {
					return name, err
				}
			}
		}
		if err := w.file(path.Join(name, p), files[p]); err != nil {
			return name, err
		}
	}
	if opt.SetPerms != nil {
		w.step("set permissions")
		if err := opt.SetPerms(filepath.Join(w.dir, name)); err != nil {
			return name, err
		}
	}
	return name, nil
}

func (w writer) newDir() (string, error) {
	for {
		name := time.Now().UTC().Format(stamp) + strconv.FormatUint(uint64(rand.Uint32()), 10)
		w.step("mkdir generation")
		err := w.Mkdir(name, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		w.step("chmod generation")
		return name, w.Chmod(name, 0o755)
	}
}

func (w writer) file(name string, f File) error {
	w.step("create")
	out, err := w.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w.step("write")
	_, err = out.Write(f.Data)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if f.UID != nil {
		w.step("chown")
		if err := w.Lchown(name, int(*f.UID), -1); err != nil {
			return err
		}
	}
	w.step("chmod") // after chown, so that the owner never has more access than Mode grants
	return w.Chmod(name, f.Mode.Perm())
}

// replace points "..data" to another directory, atomically.
func (w writer) replace(name string) error {
	w.step("remove left-over link")
	if err := w.Remove(tempName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w.step("symlink")
	if err := w.Symlink(name, tempName); err != nil {
		return err
	}
	w.step("rename")
	return w.Rename(tempName, dataName)
}

// link creates the visible links that are missing or point elsewhere.
func (w writer) link(files Payload) error {
	for _, name := range files.names() {
		want := dataName + "/" + name
		got, err := w.Readlink(name)
		switch {
		case err == nil && filepath.ToSlash(got) == want:
			continue
		case err == nil:
			w.step("remove wrong link")
			if err := w.Remove(name); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is not a symbolic link: %w", name, err)
		}
		w.step("link name")
		if err := w.Symlink(want, name); err != nil {
			return err
		}
		if uid := files.owner(name); uid != nil {
			w.step("chown link")
			if err := w.Lchown(name, int(*uid), -1); err != nil {
				return err
			}
		}
	}
	return nil
}

// clean removes links to files that no longer exist, directories other than the current one, and the
// temporary link of a killed writer.
func (w writer) clean(current string, files Payload) error {
	entries, err := fs.ReadDir(w.FS(), ".")
	if err != nil {
		return err
	}
	names := files.names()
	var errs []error
	var old []string
	for _, e := range entries {
		name := e.Name()
		switch target, err := w.Readlink(name); {
		case name == tempName:
			w.step("remove left-over link")
			errs = append(errs, w.Remove(name))
		case e.IsDir() && name != current && generation.MatchString(name):
			old = append(old, name)
		case err == nil && filepath.ToSlash(target) == dataName+"/"+name && !slices.Contains(names, name):
			w.step("remove link")
			errs = append(errs, w.Remove(name))
		}
	}
	for _, name := range old { // after the links into it
		errs = append(errs, w.removeAll(name))
	}
	return errors.Join(errs...)
}

func (w writer) removeAll(name string) error {
	if name == "" {
		return nil
	}
	w.step("remove generation")
	return w.RemoveAll(name)
}
