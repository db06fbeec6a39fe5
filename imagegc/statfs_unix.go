//go:build linux || darwin

package imagegc

import (
	"fmt"
	"syscall"
)

// StatFS returns how full the file system is that path is on: for Config.Space. What
// only root may use counts as used.
func StatFS(path string) (Space, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return Space{}, fmt.Errorf("imagegc: file system of %s: %w", path, err)
	}
	unit := uint64(s.Bsize)
	return Space{Capacity: s.Blocks * unit, Available: s.Bavail * unit}, nil
}
