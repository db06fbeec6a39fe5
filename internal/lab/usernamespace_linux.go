package lab

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A UserNamespace starts processes as user 0 of a new user namespace, in which no other ID is
// mapped and setgroups is denied, as unshare --map-root-user does. Outside they are an
// unprivileged user.
type UserNamespace struct{ uid, gid int }

// overflowID is the user and group of such processes if the test runs as root: root of the machine may set
// kernel parameters in a user namespace as well.
const overflowID = 65534

// NewUserNamespace skips the test if the machine does not permit user namespaces; if
// KUBEPARTS_CI=1, the test fails instead.
func NewUserNamespace(t testing.TB) UserNamespace {
	t.Helper()
	u := UserNamespace{os.Getuid(), os.Getgid()}
	if u.uid == 0 {
		u = UserNamespace{overflowID, overflowID}
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = u.Attributes(0)
	switch err := cmd.Run(); {
	case err != nil && os.Getenv("KUBEPARTS_CI") == "1":
		t.Fatalf("lab: KUBEPARTS_CI=1 forbids to skip, and this machine permits no user namespaces: %v", err)
	case err != nil:
		t.Skipf("lab: this machine permits no user namespaces: %v", err)
	}
	return u
}

// Attributes returns those of a command that is started in a new user namespace, and in the
// further new namespaces, such as syscall.CLONE_NEWNS.
func (u UserNamespace) Attributes(further uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | further,
		UidMappings: []syscall.SysProcIDMap{{HostID: u.uid, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: u.gid, Size: 1}},
		Credential: &syscall.Credential{NoSetGroups: true},
	}
}

// Directory is [Directory] with that user as owner.
func (u UserNamespace) Directory(t testing.TB) string {
	t.Helper()
	dir := Directory(t)
	if err := os.Chown(dir, u.uid, u.gid); err != nil {
		t.Fatalf("lab: own a directory: %v", err)
	}
	return dir
}
