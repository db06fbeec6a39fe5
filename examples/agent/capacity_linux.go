package main

import "syscall"

// diskBytes returns the size of the file system that path is on.
func diskBytes(path string) (int64, bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Blocks) * fs.Bsize, true
}
