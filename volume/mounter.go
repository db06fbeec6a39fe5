package volume

import (
	"fmt"
	"os"
	"runtime"

	mount "k8s.io/mount-utils"
)

// A Mounter mounts and unmounts: mount.New("") of k8s.io/mount-utils is the
// machine's, volumetest.Mounter one in memory. Its methods don't end with a
// context: a file system that hangs holds the goroutine that mounts it.
type Mounter = mount.Interface

// CanMount reports whether this process may mount: it is root on Linux.
func CanMount() bool { return runtime.GOOS == "linux" && os.Geteuid() == 0 }

// NewMounter returns the Mounter of this machine if mounts is set ([CanMount]). Else it
// returns one for a process that may not mount: in place of a tmpfs it leaves the target
// as a directory, on the disk of the manager's root; every other mount is an error; and
// nothing is mounted, so that Unmount does nothing.
func NewMounter(mounts bool) Mounter {
	if mounts {
		return mount.New("")
	}
	return directoryMounter{mount.New("")}
}

// A directoryMounter implements [Mounter] without mounts.
type directoryMounter struct{ mount.Interface }

func (directoryMounter) Mount(_, target, fstype string, _ []string) error {
	if fstype == "tmpfs" {
		return nil
	}
	return fmt.Errorf("mount %s of type %q: the process may not mount: it is not root on Linux", target, fstype)
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
