package atomic

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// sorted returns the paths of the payload in order.
func (p Payload) sorted() []string { return slices.Sorted(maps.Keys(p)) }

// holds reports whether directory name holds these files, with these contents and
// modes, and no others. Whatever can't be looked at differs.
func (w writer) holds(name string, files Payload, adds fs.FileMode) bool {
	seen := 0
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
		seen++
		return nil
	})
	return err == nil && seen == len(files)
}
