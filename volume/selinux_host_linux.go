package volume

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// HostSELinuxLabel returns a Config.SELinuxLabel for this machine, nil if SELinux is off. The
// labels are those that container runtimes give to files: the context of container files
// that the installed policy specifies, with the user and the level of the container. It
// returns an error if SELinux is on and the policy's files cannot be read.
func HostSELinuxLabel() (func(*v1.SELinuxOptions) (string, error), error) {
	var st unix.Statfs_t
	if err := unix.Statfs("/sys/fs/selinux", &st); err != nil || int64(st.Type) != unix.SELINUX_MAGIC || st.Flags&unix.ST_RDONLY != 0 {
		return nil, nil
	}
	context, err := seLinuxFileContext(os.DirFS("/"))
	if err != nil {
		return nil, fmt.Errorf("volume: SELinux contexts of containers: %w", err)
	}
	return func(options *v1.SELinuxOptions) (string, error) { return seLinuxFileLabel(context, options), nil }, nil
}
