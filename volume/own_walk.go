//go:build !linux

package volume

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Own makes the files below dir belong to a group. It returns when all do, when
// ctx ends, or when a directory cannot be read; files that cannot be changed are
// left as they are.
func SetOwnership(ctx context.Context, dir string, o Ownership) error {
	if runtime.GOOS == "windows" {
		return nil // there are no such groups
	}
	var after []string // directories, parents first
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			after = append(after, path)
			return nil
		}
		return ownEntry(path, o)
	})
	for i := len(after) - 1; i >= 0 && err == nil; i-- {
		err = ownEntry(after[i], o)
	}
	return err
}

func ownEntry(path string, o Ownership) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	_ = os.Lchown(path, -1, int(o.Group))
	if info.Mode()&fs.ModeSymlink == 0 {
		_ = os.Chmod(path, info.Mode()|wantedMode(info.IsDir(), o.ReadOnly))
	}
	return nil
}

// wantedMode returns the bits that an entry must have at least (vol-65).
func wantedMode(dir, readOnly bool) fs.FileMode {
	mode := fs.FileMode(0o660)
	if readOnly {
		mode = 0o440
	}
	if dir {
		mode |= fs.ModeSetgid | 0o110
	}
	return mode
}
