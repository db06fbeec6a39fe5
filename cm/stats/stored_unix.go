//go:build linux || darwin

package stats

import (
	"io/fs"
	"syscall"
)

// stored returns the disk usage of a file in bytes, which differs from its size for
// sparse files and files with blocks beyond their end.
func stored(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Blocks >= 0 {
		return uint64(s.Blocks) * 512 // whatever the file system's block size
	}
	return uint64(info.Size())
}
