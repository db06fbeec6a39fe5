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

// Results of reading a manifest that are not failures.
var (
	errGone      = errors.New("gone")      // removed since it was listed
	errDirectory = errors.New("directory") // not a manifest
	errUnsettled = errors.New("unsettled") // is being written
)

// list returns the manifests at path, sorted: path itself if it is not a directory, else its files
// except hidden ones (rule src-23). It returns fs.ErrNotExist if path does not exist.
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
		// The entries that were read before the error are not a complete set.
		return nil, true, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	return paths, true, nil
}

// readManifest reads a regular file of at most manifest.MaxBytes bytes. It returns errUnsettled if the
// file was modified within settle. Symbolic links are followed; a dangling one is an error, not a removed
// file.
func readManifest(path string, now time.Time, settle time.Duration) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, errGone
		}
		return nil, fmt.Errorf("dangling symbolic link: %w", bare(err))
	}
	if err != nil {
		return nil, bare(err)
	}
	// Checked before the file is opened, since opening a pipe or a device can have side
	// effects, and again afterwards, since it may have been replaced. O_NONBLOCK prevents
	// that opening a pipe blocks.
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
	// A modification time in the future, due to a wrong clock, is ignored.
	if age := now.Sub(before.ModTime()); age >= 0 && age < settle {
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

// checkRegular returns an error unless info describes a regular file that is not too large.
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
	return fmt.Errorf("has %d bytes; the limit is %d", size, manifest.MaxBytes)
}

// bare returns an error of package os without operation and path, since the path precedes every error
// of a manifest.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// updateManifest returns the state of a manifest after it was read with this result; ok is false if
// the manifest does not exist. If it cannot be used, the last valid version stays until the file is
// removed.
func updateManifest(m manifestState, data []byte, err error, pod func(data []byte) (*v1.Pod, error), now time.Time) (_ manifestState, ok bool) {
	switch {
	case err == errGone || err == errDirectory:
		return manifestState{}, false
	case err == errUnsettled:
		// The previous state stays. A file that was never read is ignored until it
		// is complete.
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
	decoded, err := pod(data)
	if err != nil {
		m.err = fmt.Errorf("podsource: %s: %w", m.path, err)
		return m, true
	}
	m.pod, m.good, m.err = decoded, now, nil
	return m, true
}
