package emptydir

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume"
)

// A Tmpfs mounts tmpfs file systems. Plugins that must not write to disk share it. Safe for concurrent
// use for different directories.
type Tmpfs struct {
	Mounter     volume.Mounter
	Allocatable v1.ResourceList // of the node for pods; nil: unknown
	NoSwap      bool            // tmpfs supports the option noswap
	Logger      *slog.Logger    // nil: discarded
}

// Mount mounts a tmpfs for the pod at dir, which it creates, unless one is mounted. It remounts a tmpfs
// whose size differs from [Size]; a failure of that is only logged. The further options apply to a new
// tmpfs.
func (t *Tmpfs) Mount(dir string, pod *v1.Pod, sizeLimit *resource.Quantity, further ...string) error {
	if err := MakeDir(dir); err != nil {
		return err
	}
	mounted, err := t.Mounter.IsMountPoint(dir)
	if err != nil {
		return err
	}
	size := Size(pod, sizeLimit, t.Allocatable)
	if mounted && isTmpfs(dir, size) {
		return nil
	}
	point, err := mountedAt(t.Mounter, dir)
	if err != nil {
		return err
	}
	var options []string
	if size > 0 {
		options = append(options, "size="+strconv.FormatInt(size, 10))
	}
	switch {
	case point == nil:
		if t.NoSwap {
			options = append(options, "noswap")
		}
		return t.Mounter.MountSensitiveWithoutSystemd("tmpfs", dir, "tmpfs", append(options, further...), nil)
	case point.Type != "tmpfs":
		return fmt.Errorf("%s has a %s mounted on it, not a tmpfs", dir, point.Type)
	case size == 0 || sizeOf(point.Opts) == pages(size):
		return nil
	}
	// A remount cannot change the option noswap.
	if err := t.Mounter.MountSensitiveWithoutSystemd("tmpfs", dir, "tmpfs", append(options, "remount"), nil); err != nil && t.Logger != nil {
		t.Logger.Warn("Failed to resize tmpfs; it keeps its size", "dir", dir, "size", size, "err", err)
	}
	return nil
}

// sizeOf returns the size among a tmpfs's options as the kernel lists it, in bytes;
// -1 if there is none.
func sizeOf(options []string) int64 {
	i := slices.IndexFunc(options, func(o string) bool { return strings.HasPrefix(o, "size=") })
	if i < 0 {
		return -1
	}
	digits, unit := strings.TrimPrefix(options[i], "size="), int64(1)
	switch {
	case strings.HasSuffix(digits, "k"):
		unit = 1 << 10
	case strings.HasSuffix(digits, "m"):
		unit = 1 << 20
	case strings.HasSuffix(digits, "g"):
		unit = 1 << 30
	}
	n, err := strconv.ParseInt(strings.TrimRight(digits, "kmg"), 10, 64)
	if err != nil {
		return -1
	}
	return pages(n * unit)
}

// pages rounds up to whole pages of 4 KiB, as the kernel does.
func pages(bytes int64) int64 { return (bytes + 4095) / 4096 * 4096 }

// mountedAt returns the mount at dir, or nil.
func mountedAt(m volume.Mounter, dir string) (*mount.MountPoint, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	// Listing all mounts is slow.
	if mounted, err := m.IsMountPoint(real); err != nil || !mounted {
		return nil, err
	}
	points, err := m.List()
	if err != nil {
		return nil, err
	}
	var found *mount.MountPoint
	for i := range points {
		if at := volume.UnescapePath(points[i].Path); at == real || at == dir {
			found = &points[i] // the last one is on top
		}
	}
	return found, nil
}

// MakeDir creates the directory of a volume with mode 0777, regardless of the umask, so that containers
// of any user can write to it. Missing parents get mode 0750.
func MakeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	const open fs.FileMode = 0o777
	switch err := os.Mkdir(dir, open); {
	case os.IsExist(err):
		info, err := os.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		return err
	case err != nil:
		return err
	}
	return os.Chmod(dir, open)
}
