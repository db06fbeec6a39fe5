package volume

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// kernelMountPoint reports whether something is mounted at path. It returns errLink if path
// is a link, and errors.ErrUnsupported on kernels before 5.6.
func kernelMountPoint(path string) (bool, error) {
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(parent)
	fd, err := unix.Openat2(parent, filepath.Base(path), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_BENEATH,
	})
	switch {
	case errors.Is(err, unix.EXDEV):
		return true, nil
	case err != nil:
		return false, err // ENOSYS is errors.ErrUnsupported
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return false, errLink
	}
	return false, nil
}
