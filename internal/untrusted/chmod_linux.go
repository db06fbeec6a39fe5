package untrusted

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ChmodAt changes the mode of an entry of the directory that is open at dir, but
// never that of the target of a link. It ignores errors: the entry may be gone.
func ChmodAt(dir int, name string, mode uint32) {
	err := unix.Fchmodat(dir, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EOPNOTSUPP) {
		return
	}
	// Before Linux 6.6 there is no such call.
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		_ = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
	}
}
