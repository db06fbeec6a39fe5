package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// ErrMounted means that a directory was not removed because a mount in it could not be unmounted.
var ErrMounted = untrusted.ErrMounted

// RemoveTree unmounts the mounts at and below dir and removes dir with its content. It never enters a
// mount point nor follows a symbolic link, including those created concurrently. If a mount cannot be
// unmounted, it returns an error that is [ErrMounted]; other files in dir may have been removed. It
// returns nil if dir does not exist.
func RemoveTree(ctx context.Context, m Mounter, dir string) error {
	if m == nil {
		return fmt.Errorf("volume: remove %s: Mounter is nil", dir)
	}
	// Listing all mounts of a machine is slow, so they are listed only if there are some below
	// dir.
	if unmountAt(m, dir) == nil {
		err := untrusted.RemoveTree(ctx, dir)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, ErrMounted):
			return fmt.Errorf("volume: remove %s: %w", dir, err)
		}
	}
	if err := unmountBelow(m, dir); err != nil {
		return err
	}
	if err := untrusted.RemoveTree(ctx, dir); err != nil {
		return fmt.Errorf("volume: remove %s: %w", dir, err)
	}
	return nil
}

// unmountBelow unmounts everything at and below dir.
func unmountBelow(m Mounter, dir string) error {
	points, err := mountsBelow(m, dir)
	if err != nil {
		return fmt.Errorf("volume: list mounts: %w", err)
	}
	for _, point := range points {
		if err := m.Unmount(point); err != nil {
			return fmt.Errorf("volume: unmount %s: %w: %w", point, ErrMounted, err)
		}
	}
	return nil
}

// mountsBelow returns the mount points at and below dir, innermost first. A mount point occurs once per
// mount.
func mountsBelow(m Mounter, dir string) ([]string, error) {
	if m == nil {
		return nil, errors.New("Mounter is nil")
	}
	real, err := realDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := m.List()
	if err != nil {
		return nil, err
	}
	var below []string
	for _, point := range all {
		path := UnescapePath(point.Path)
		if path == real || strings.HasPrefix(path, strings.TrimSuffix(real, "/")+"/") {
			below = append(below, path)
		}
	}
	slices.Reverse(below) // the last mount at a mount point first
	slices.SortStableFunc(below, func(a, b string) int {
		return cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/"))
	})
	return below, nil
}

// realDir returns dir with the symbolic links in its parent resolved, as the kernel lists it. dir itself
// is not resolved.
func realDir(dir string) (string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(dir)), nil
}

// UnescapePath returns the path of a mount point in a list of mounts, in which the kernel writes white
// space and backslashes as octal numbers and appends a mark to deleted paths.
func UnescapePath(path string) string {
	path = strings.TrimSuffix(path, `\040(deleted)`)
	if !strings.Contains(path, `\`) {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if n, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// exists reports whether path exists. It does not follow a symbolic link.
func exists(path string) (bool, error) {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}
