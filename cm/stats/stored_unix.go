//go:build linux || darwin

package stats

import (
	"io/fs"
	"syscall"
)

// stored returns how many bytes a file takes up on disk. Its size is not that: pods
// make files that are mostly holes, or with blocks behind their end.
func stored(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Blocks >= 0 {
		return uint64(s.Blocks) * 512 // whatever the file system's block size
	}
	return uint64(info.Size())
}
