package untrusted

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// ReadDir returns at most limit entries of a directory, sorted by name. If the
// directory has more, it returns limit of them, in no particular selection, and
// ErrTooLarge. A link to a directory is an error.
func ReadDir(path string, limit int) ([]fs.DirEntry, error) {
	dir, err := openDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := readEntries(dir, limit)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

func readEntries(dir *os.File, limit int) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	for len(entries) <= limit {
		some, err := dir.ReadDir(limit + 1 - len(entries))
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) || err == nil && len(some) == 0 {
			return entries, nil
		}
		if err != nil {
			return entries, err
		}
	}
	return entries[:limit], &fs.PathError{Op: "read directory", Path: dir.Name(), Err: fmt.Errorf("%w: more than %d entries", ErrTooLarge, limit)}
}
