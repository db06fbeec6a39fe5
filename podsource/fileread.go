package podsource

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// What reading a manifest may come to, beside a real failure.
var (
	errGone      = errors.New("gone")      // removed since it was listed
	errDirectory = errors.New("directory") // not looked into (src-23)
	errUnsettled = errors.New("unsettled") // someone is still writing
)

// list returns the manifests at path, sorted: path itself if it is no
// directory, else what is in it, without hidden names and without what lies
// deeper (src-23). A path that does not exist gives an error that is
// fs.ErrNotExist.
func list(path string) (paths []string, dir bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return []string{path}, false, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		// Entries that were read before the error are no whole set.
		return nil, true, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	return paths, true, nil
}

// readManifest reads one regular file of at most manifest.MaxBytes bytes, which has
// not been written to for the time of rest. Links are followed; a link to
// nothing is no removed file but one that cannot be read.
func readManifest(path string, now time.Time, rest time.Duration) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, errGone
		}
		return nil, fmt.Errorf("is a link to nothing: %w", bare(err))
	}
	if err != nil {
		return nil, bare(err)
	}
	// Checked before it is opened, since opening a pipe or a device can have
	// effects, and again afterwards, since it may have been exchanged; in
	// between, O_NONBLOCK keeps a pipe from holding us.
	if err := checkRegular(info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, bare(err)
	}
	if err := checkRegular(before); err != nil {
		return nil, err
	}
	// A time in the future is a clock's fault and never comes to rest.
	if age := now.Sub(before.ModTime()); age >= 0 && age < rest {
		return nil, errUnsettled
	}
	data, err := io.ReadAll(io.LimitReader(f, manifest.MaxBytes+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(data) > manifest.MaxBytes {
		return nil, tooLarge(int64(len(data)))
	}
	after, err := f.Stat()
	if err != nil {
		return nil, bare(err)
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return nil, errUnsettled
	}
	return data, nil
}

// acceptable refuses what is no file, and what is too large, unread.
func checkRegular(info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode.IsRegular() && info.Size() > manifest.MaxBytes:
		return tooLarge(info.Size())
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errDirectory
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("is a named pipe, not a regular file")
	case mode&fs.ModeSocket != 0:
		return errors.New("is a socket, not a regular file")
	case mode&fs.ModeDevice != 0:
		return errors.New("is a device, not a regular file")
	}
	return fmt.Errorf("is not a regular file (%v)", mode.Type())
}

func tooLarge(size int64) error {
	return fmt.Errorf("has %d bytes; a manifest may have %d", size, manifest.MaxBytes)
}

// bare takes operation and path off an error of package os; the path is
// prepended to every error of a manifest anyway.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// judge returns what is known of a manifest after it has been read with this
// outcome, given what was known before; ok is false if there is no such
// manifest (any more). What cannot be used leaves the last good version in
// force (lq-23): it is dropped when the file is gone, and not before.
func updateManifest(m manifestState, data []byte, err error, pod func(data []byte) (*v1.Pod, error), now time.Time) (_ manifestState, ok bool) {
	switch {
	case err == errGone || err == errDirectory:
		return manifestState{}, false
	case err == errUnsettled:
		// Known again when it has come to rest; a file that was never read
		// is not there yet.
		return m, m.pod != nil || m.err != nil
	case err != nil:
		m.sum, m.err = [32]byte{}, fmt.Errorf("podsource: %s: %w", m.path, err)
		return m, true
	}
	sum := sha256.Sum256(data)
	if sum == m.sum {
		if m.err == nil {
			m.good = now
		}
		return m, true
	}
	m.sum = sum
	made, err := pod(data)
	if err != nil {
		m.err = fmt.Errorf("podsource: %s: %w", m.path, err)
		return m, true
	}
	m.pod, m.good, m.err = made, now, nil
	return m, true
}
