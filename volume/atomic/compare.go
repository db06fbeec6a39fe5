package atomic

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// sorted returns the sorted paths of the payload.
func (p Payload) sorted() []string { return slices.Sorted(maps.Keys(p)) }

// contains reports whether the directory contains exactly these files with these contents and modes. A
// file that cannot be read is different.
func (w writer) contains(name string, files Payload, adds fs.FileMode) bool {
	matched := 0
	err := fs.WalkDir(w.FS(), name, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		want, ok := files[p[len(name)+1:]]
		if !ok || !e.Type().IsRegular() {
			return fs.ErrInvalid
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !sameMode(info.Mode(), want.Mode, adds) || info.Size() != int64(len(want.Data)) {
			return fs.ErrInvalid
		}
		got, err := w.ReadFile(path.Clean(p))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want.Data) {
			return fs.ErrInvalid
		}
		matched++
		return nil
	})
	return err == nil && matched == len(files)
}
