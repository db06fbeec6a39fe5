//go:build unix && !linux

package untrusted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func removeTree(ctx context.Context, dir string) error {
	parent, err := os.Stat(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, statErr := os.Lstat(path)
		if statErr == nil && device(info) != device(parent) {
			return fmt.Errorf("%s: %w", path, ErrMounted)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func device(info fs.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Dev) }
