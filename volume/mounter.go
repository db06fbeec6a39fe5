package volume

import (
	"fmt"
	"os"
	"runtime"

	mount "k8s.io/mount-utils"
)

// A Mounter mounts and unmounts file systems. [NewMounter] returns that of the host;
// volumetest.Mounter is in memory. Its methods take no context: a file system that hangs blocks the
// calling goroutine.
type Mounter = mount.Interface

// CanMount reports whether the process may mount file systems, that is, whether it is root on Linux.
func CanMount() bool { return runtime.GOOS == "linux" && os.Geteuid() == 0 }

// NewMounter returns the Mounter of the host if mounts is true; see [CanMount]. Otherwise it returns one
// for a process that may not mount: mounting a tmpfs leaves the target a directory on disk, any other
// mount is an error, and Unmount does nothing.
func NewMounter(mounts bool) Mounter {
	if mounts {
		return mount.New("")
	}
	return directoryMounter{mount.New("")}
}

// A directoryMounter implements [Mounter] without mounts.
type directoryMounter struct{ mount.Interface }

// Unwrap hides the optional interfaces of the mounter, since there is nothing to unmount.
func (directoryMounter) Unwrap() any { return nil }

func (directoryMounter) Mount(_, target, fstype string, _ []string) error {
	if fstype == "tmpfs" {
		return nil
	}
	return fmt.Errorf("mount %s of type %q: permission denied: only root on Linux may mount", target, fstype)
}

func (d directoryMounter) MountSensitive(source, target, fstype string, options, _ []string) error {
	return d.Mount(source, target, fstype, options)
}

func (d directoryMounter) MountSensitiveWithoutSystemd(source, target, fstype string, options, _ []string) error {
	return d.Mount(source, target, fstype, options)
}

func (d directoryMounter) MountSensitiveWithoutSystemdWithMountFlags(source, target, fstype string, options, _, _ []string) error {
	return d.Mount(source, target, fstype, options)
}

func (directoryMounter) List() ([]mount.MountPoint, error)          { return nil, nil }
func (directoryMounter) IsMountPoint(string) (bool, error)          { return false, nil }
func (directoryMounter) IsLikelyNotMountPoint(string) (bool, error) { return true, nil }
func (directoryMounter) Unmount(string) error                       { return nil }
