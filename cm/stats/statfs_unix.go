//go:build linux || darwin

package stats

import (
	"fmt"
	"syscall"
)

// Statfs returns the usage of the file system that contains path, as df does.
func Statfs(path string) (Disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return Disk{}, fmt.Errorf("statfs %s: %w", path, err)
	}
	block := uint64(s.Bsize)
	return Disk{
		Capacity: s.Blocks * block, Available: s.Bavail * block, Used: (s.Blocks - s.Bfree) * block,
		Inodes: s.Files, InodesFree: s.Ffree, InodesInUse: s.Files - s.Ffree,
	}, nil
}
