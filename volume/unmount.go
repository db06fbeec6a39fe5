package volume

import (
	"errors"
	"fmt"
	"io/fs"
)

// maxStacked is how many mounts at one directory are removed; there is rarely more than one.
const maxStacked = 32

// unmountAt unmounts what is mounted at path itself, without listing all mounts of the
// machine. Mounts below path make it fail.
func unmountAt(m Mounter, path string) error {
	for range maxStacked {
		mounted, err := IsMountPoint(m, path)
		if err != nil || !mounted {
			return err
		}
		if err := m.Unmount(path); err != nil {
			return fmt.Errorf("volume: unmount %s: %w: %w", path, ErrMounted, err)
		}
	}
	return fmt.Errorf("volume: unmount %s: %w: more than %d times", path, ErrMounted, maxStacked)
}

// IsMountPoint reports whether something is mounted at path. It does not follow path if it is a link,
// and on Linux 5.6 and later it does not access the file system that is mounted, which may not answer;
// [Mounter].IsMountPoint does. It returns false if path does not exist.
func IsMountPoint(m Mounter, path string) (bool, error) {
	mounted, err := kernelMountPoint(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errLink):
		return false, nil
	case err == nil && mounted:
		return true, nil
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return false, fmt.Errorf("volume: %s: %w", path, err)
	}
	if mounted, err = m.IsMountPoint(path); errors.Is(err, fs.ErrNotExist) { // a Mounter in memory has mounts of its own
		return false, nil
	}
	return mounted, err
}

// errLink reports that a path is a link.
var errLink = errors.New("is a link")
