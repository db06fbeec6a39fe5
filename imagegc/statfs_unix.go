//go:build linux || darwin

package imagegc

import (
	"fmt"
	"syscall"
)

// statFS returns the size of the file system of path. Blocks reserved for root count as used.
func statFS(path string) (Space, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return Space{}, fmt.Errorf("imagegc: stat file system of %s: %w", path, err)
	}
	unit := uint64(s.Bsize)
	return Space{Capacity: s.Blocks * unit, Available: s.Bavail * unit}, nil
}
