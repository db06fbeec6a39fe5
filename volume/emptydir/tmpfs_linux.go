package emptydir

import "golang.org/x/sys/unix"

// isTmpfs reports whether the file system at dir is a tmpfs of that size, in bytes; 0: of any.
func isTmpfs(dir string, size int64) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || int64(st.Type) != unix.TMPFS_MAGIC {
		return false
	}
	return size == 0 || int64(st.Blocks)*int64(st.Bsize) == pages(size)
}
