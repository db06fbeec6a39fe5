//go:build !windows

package local

import (
	"os"
	"syscall"
)

// groupOf returns the group that a file belongs to.
func groupOf(path string) (gid int64, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int64(stat.Gid), true
}
