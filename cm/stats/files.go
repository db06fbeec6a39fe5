package stats

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// mostEntries bounds how much of a directory is listed. A pod has fewer containers,
// and a container fewer logs and termination messages.
const mostEntries = 10_000

// files returns the size and number of the regular files in a directory, without
// those in directories below it.
func files(dir string) (bytes, inodes uint64, err error) {
	return sum(dir, func(info fs.FileInfo) uint64 { return uint64(info.Size()) })
}

// messages returns the disk usage and number of the regular files in the directories
// in dir. Links are not followed.
func messages(dir string) (bytes, inodes uint64, err error) {
	entries, err := list(dir)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		b, n, err := sum(filepath.Join(dir, e.Name()), stored)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		bytes, inodes = bytes+b, inodes+n
	}
	return bytes, inodes, nil
}

func sum(dir string, size func(fs.FileInfo) uint64) (bytes, inodes uint64, err error) {
	entries, err := list(dir)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away
		}
		if err != nil {
			return 0, 0, err
		}
		bytes, inodes = bytes+size(info), inodes+1
	}
	return bytes, inodes, nil
}

// list returns the entries of a directory, at most mostEntries of them.
func list(dir string) ([]fs.DirEntry, error) {
	entries, err := untrusted.ReadDir(dir, mostEntries)
	if errors.Is(err, untrusted.ErrTooLarge) {
		err = nil
	}
	return entries, err
}
