package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// bindSubPath bind-mounts a path in a volume to target and returns target.
func bindSubPath(m Mounter, root, sub, target string) (string, error) {
	fd, err := openSubPath(root, sub, openInside)
	if err != nil {
		return "", fmt.Errorf("volume: subPath %q: %w", sub, err)
	}
	defer unix.Close(fd)
	var of unix.Stat_t
	if err := unix.Fstat(fd, &of); err != nil {
		return "", fmt.Errorf("volume: subPath %q: %w", sub, err)
	}
	switch bound, err := isBound(m, target, &of); {
	case err != nil:
		return "", err
	case bound: // for an earlier instance of the container
		return target, nil
	}
	if err := makeTarget(target, of.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return "", fmt.Errorf("volume: subPath %q: %w", sub, err)
	}
	// The source is the descriptor, because the path may have been replaced.
	if err := bindDescriptor(m, fd, target); err != nil {
		_ = os.Remove(target)
		return "", fmt.Errorf("volume: bind subPath %q: %w", sub, err)
	}
	return target, nil
}

// isBound reports whether the file of is mounted at target. It unmounts another file that is mounted
// there.
func isBound(m Mounter, target string, of *unix.Stat_t) (bool, error) {
	mounted, err := IsMountPoint(m, target)
	if err != nil || !mounted {
		return false, err
	}
	var now unix.Stat_t
	if unix.Lstat(target, &now) == nil && now.Dev == of.Dev && now.Ino == of.Ino {
		return true, nil
	}
	if unmountAt(m, target) == nil {
		return false, nil
	}
	return false, unmountBelow(m, target) // something is mounted below it
}

// makeTarget creates an empty directory or file as a mount point.
func makeTarget(target string, dir bool) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	if info, err := os.Lstat(target); err == nil && info.IsDir() != dir {
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if dir {
		return os.MkdirAll(target, 0o750)
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// opens returns an O_PATH descriptor of a path in the directory with descriptor root. It follows
// symbolic links that stay in the directory.
type opens func(root int, rootPath, path string) (int, error)

// errEscapes means that the path leads out of the volume.
var errEscapes = errors.New("leads out of the volume")

// openSubPath opens a path in a volume. It creates missing directories with the mode of the volume's
// root.
func openSubPath(rootPath, sub string, open opens) (int, error) {
	root, err := unix.Open(rootPath, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	fd, err := open(root, rootPath, sub)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	if err := makeInside(root, rootPath, sub, open); err != nil {
		return -1, err
	}
	return open(root, rootPath, sub)
}

// makeInside creates the missing directories of a path.
func makeInside(root int, rootPath, sub string, open opens) error {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return err
	}
	mode := st.Mode & 0o7777
	parts := strings.Split(filepath.Clean(sub), "/")
	at, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { unix.Close(at) }()
	for i, name := range parts {
		made := false
		switch err := unix.Mkdirat(at, name, mode); {
		case err == nil:
			made = true
		case !errors.Is(err, unix.EEXIST):
			return err
		}
		// An existing entry may be a symbolic link, and so may a created one that was
		// replaced concurrently.
		next, err := open(root, rootPath, filepath.Join(parts[:i+1]...))
		if err != nil {
			return err
		}
		if made { // Mkdirat applies the umask
			untrusted.ChmodAt(at, name, mode)
		}
		unix.Close(at)
		at = next
	}
	return nil
}

// openInside opens with openat2: the kernel keeps the path in the directory. A path with
// a link that is absolute, or that leaves the directory and enters it again, is resolved
// first: as in the kubelet, only its end must be in the directory.
func openInside(root int, rootPath, path string) (int, error) {
	fd, err := openBeneath(root, path, 0)
	switch {
	case errors.Is(err, unix.ENOSYS):
		return openStepwise(root, rootPath, path)
	case !errors.Is(err, unix.EXDEV):
		return fd, err
	}
	rel, err := resolveInside(rootPath, path)
	if err != nil {
		return -1, err
	}
	fd, err = openBeneath(root, rel, unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) { // a link appeared meanwhile
		return -1, errEscapes
	}
	return fd, err
}

// openBeneath opens a path in a directory, and returns EXDEV if it leaves the directory at
// any point. resolve restricts it further.
func openBeneath(root int, path string, resolve uint64) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | resolve}
	for range 128 {
		fd, err := unix.Openat2(root, path, how)
		if !errors.Is(err, unix.EAGAIN) { // something was renamed meanwhile
			return fd, err
		}
	}
	return -1, errEscapes
}

// openStepwise is openInside for kernels before 5.6: links are resolved first, and then each
// directory is opened from the one above, following none.
func openStepwise(root int, rootPath, path string) (int, error) {
	rel, err := resolveInside(rootPath, path)
	if err != nil {
		return -1, err
	}
	at, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for _, name := range slices.DeleteFunc(strings.Split(rel, "/"), func(s string) bool { return s == "." }) {
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(at)
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(next, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			unix.Close(next)
			return -1, errors.Join(errEscapes, err)
		}
		at = next
	}
	return at, nil
}

// resolveInside resolves the links of a path in a directory and returns where it leads to,
// relative to the directory. It returns errEscapes if that is not in the directory, or if
// a link leads nowhere. Links may change afterwards: the result must be opened without
// following any.
func resolveInside(rootPath, path string) (string, error) {
	real, err := filepath.EvalSymlinks(rootPath)
	if err != nil {
		return "", err
	}
	to, err := filepath.EvalSymlinks(filepath.Join(real, path))
	if err != nil {
		there, _ := exists(filepath.Join(real, path))
		if there || !errors.Is(err, fs.ErrNotExist) { // a link may lead to any file of the machine, whose error must not be returned
			return "", errEscapes
		}
		return "", unix.ENOENT
	}
	rel, err := filepath.Rel(real, to)
	if err != nil || !filepath.IsLocal(rel) {
		return "", errEscapes
	}
	return rel, nil
}
