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

// ErrMounted reports that something is mounted in a directory that was to be
// removed, and could not be unmounted.
var ErrMounted = untrusted.ErrMounted

// RemoveTree removes a directory and everything in it, except what is mounted
// there: it unmounts the mounts at and below dir, and enters no mount point and
// follows no link, also not one that appears meanwhile (F-39). If a mount below dir
// cannot be unmounted, files beside it may be gone. A directory that does not exist
// is not an error.
func RemoveTree(ctx context.Context, m Mounter, dir string) error {
	if m == nil {
		return fmt.Errorf("volume: remove %s: there is no Mounter", dir)
	}
	// To list the mounts of a machine takes as long as there are mounts: they are
	// listed only if there are some below dir.
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

// unmountBelow unmounts what is mounted at dir and below it.
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

// mountsBelow returns the mount points at dir and below it, innermost first, each
// as often as something is mounted there.
func mountsBelow(m Mounter, dir string) ([]string, error) {
	if m == nil {
		return nil, errors.New("there is no Mounter")
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
		path := ListedPath(point.Path)
		if path == real || strings.HasPrefix(path, strings.TrimSuffix(real, "/")+"/") {
			below = append(below, path)
		}
	}
	slices.Reverse(below) // of those at one place, the last that came goes first
	slices.SortStableFunc(below, func(a, b string) int {
		return cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/"))
	})
	return below, nil
}

// realDir returns the path of dir as the kernel lists it: without links on the
// way. Dir itself is not followed if it is one.
func realDir(dir string) (string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(dir)), nil
}

// ListedPath returns the path of a mount point that a Mounter lists: the kernel
// writes blanks and such in octal, and marks what was removed below a mount.
func ListedPath(path string) string {
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

// exists reports whether there is anything at path; a link counts, wherever it
// leads.
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
