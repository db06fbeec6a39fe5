package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	mount "k8s.io/mount-utils"
)

// bindDescriptor bind-mounts the file with descriptor fd to target, a directory or file that exists and is
// no link. The path of the file may have been replaced; only the descriptor counts. The mounter of the host
// is not called: its mount program resolves the source by its path, except with an option that util-linux
// 2.41.0 does not handle.
func bindDescriptor(m Mounter, fd int, target string) error {
	if _, host := m.(*mount.Mounter); !host { // in memory, or a wrapped one
		source := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
		return m.MountSensitiveWithoutSystemdWithMountFlags(source, target, "", []string{"bind"}, nil, []string{"--no-canonicalize"})
	}
	at, err := unix.Open(target, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", target, err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return errors.Join(fmt.Errorf("%s: %w", target, errLink), err)
	}
	err = bindTree(fd, at)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a filter of a container
		err = bindMagicLink(fd, at)
	}
	return err
}

// bindTree mounts a copy of the mount of fd, without the mounts below it, at the descriptor of a target.
func bindTree(fd, at int) error {
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(tree)
	return os.NewSyscallError("move_mount", unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// bindMagicLink is bindTree for kernels before 5.2: the links in /proc lead to the files of the descriptors,
// whatever their paths are.
func bindMagicLink(fd, at int) error {
	link := func(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
	return os.NewSyscallError("mount", unix.Mount(link(fd), link(at), "", unix.MS_BIND, ""))
}
