//go:build !linux

package volume

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// setOwnership changes the group and modes of dir and everything below it. It returns an error if a
// directory cannot be read or ctx is done; files that cannot be changed are skipped.
func setOwnership(ctx context.Context, dir string, o ownership) error {
	if runtime.GOOS == "windows" {
		return nil // Windows has no such groups
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

func ownEntry(path string, o ownership) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	_ = os.Lchown(path, -1, int(o.group))
	if info.Mode()&fs.ModeSymlink == 0 {
		_ = os.Chmod(path, info.Mode()|requiredMode(info.IsDir(), o.readOnly))
	}
	return nil
}

// requiredMode returns the permission bits that an entry must have at least (rule vol-65).
func requiredMode(dir, readOnly bool) fs.FileMode {
	mode := fs.FileMode(0o660)
	if readOnly {
		mode = 0o440
	}
	if dir {
		mode |= fs.ModeSetgid | 0o110
	}
	return mode
}
