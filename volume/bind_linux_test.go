package volume

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	mount "k8s.io/mount-utils"
)

// inMountNamespace runs the test in a process with a mount namespace of its own. It returns true in that
// process. The test is skipped if the machine permits no such namespace.
func inMountNamespace(t *testing.T) bool {
	t.Helper()
	const inside = "KUBEPARTS_TEST_MOUNT_NAMESPACE"
	if os.Getenv(inside) == t.Name() {
		require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attributes = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
	}
	probe := exec.Command("true")
	probe.SysProcAttr = attributes
	if err := probe.Run(); err != nil {
		t.Skipf("this machine permits no mount namespace: %v", err)
	}
	test := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	test.Env = append(os.Environ(), inside+"="+t.Name())
	test.SysProcAttr = attributes
	out, err := test.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return false
}

func inode(t *testing.T, path string) string {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Lstat(path, &st))
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func openPath(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// The file of the descriptor is mounted, also if its path leads elsewhere meanwhile, by both
// implementations.
func TestADescriptorIsBound(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	for name, bind := range map[string]func(fd, at int) error{"open_tree": bindTree, "mount": bindMagicLink} {
		t.Run(name, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			dir, file := filepath.Join(root, "dir"), filepath.Join(root, "file")
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "mounted"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "inside"), nil, 0o600))
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			require.NoError(t, unix.Mount("tmpfs", filepath.Join(dir, "mounted"), "tmpfs", 0, ""))
			t.Cleanup(func() { _ = unix.Unmount(filepath.Join(root, "moved/mounted"), unix.MNT_DETACH) })
			require.NoError(t, os.WriteFile(filepath.Join(dir, "mounted/below"), nil, 0o600))
			for path, isDir := range map[string]bool{dir: true, file: false} {
				want := inode(t, path)
				fd := openPath(t, path)
				moved := filepath.Join(root, "moved")
				if !isDir {
					moved = filepath.Join(root, "moved-file")
				}
				require.NoError(t, os.Rename(path, moved))
				require.NoError(t, os.Symlink(outside, path)) // the pod swaps it for a link
				target := filepath.Join(t.TempDir(), "target")
				require.NoError(t, makeTarget(target, isDir))
				at, err := unix.Open(target, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
				require.NoError(t, err)
				require.NoError(t, bind(fd, at))
				unix.Close(at)
				assert.Equal(t, want, inode(t, target))
				if isDir {
					assert.FileExists(t, filepath.Join(target, "inside"))
					assert.NoFileExists(t, filepath.Join(target, "mounted/below"), "mounts below are not bound")
				}
				require.NoError(t, unix.Unmount(target, 0))
			}
		})
	}
}

// A sub-path is bound without the mount program, some versions of which do not bind a descriptor.
func TestASubPathDoesNotNeedTheMountProgram(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	bin := t.TempDir()
	for _, program := range []string{"mount", "umount"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\necho broken >&2\nexit 32\n"), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o755))
	target := filepath.Join(t.TempDir(), "c/0")
	for range 2 { // for the next instance of the container
		got, err := bindSubPath(mount.New(""), root, "dir", target)
		require.NoError(t, err)
		assert.Equal(t, target, got)
		assert.Equal(t, inode(t, filepath.Join(root, "dir")), inode(t, target))
	}
	require.NoError(t, unix.Unmount(target, 0))
	mounted, err := IsMountPoint(mount.New(""), target)
	require.NoError(t, err)
	assert.False(t, mounted, "it was bound once")
}

// A link in place of the target is not followed.
func TestATargetThatIsALinkIsNotFollowed(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	root, outside := t.TempDir(), t.TempDir()
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.Symlink(outside, target))
	require.ErrorIs(t, bindDescriptor(mount.New(""), openPath(t, root), target), errLink)
	assert.NotEqual(t, inode(t, root), inode(t, outside))
}

// A sub-path keeps the mount flags of its volume.
func TestASubPathKeepsTheFlagsOfItsVolume(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	root := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", root, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o755))
	require.NoError(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC, ""))
	target := filepath.Join(t.TempDir(), "c/0")
	_, err := bindSubPath(mount.New(""), root, "dir", target)
	require.NoError(t, err)
	defer func() { _ = unix.Unmount(target, 0) }()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(target, &st))
	const flags = unix.ST_RDONLY | unix.ST_NOSUID | unix.ST_NOEXEC
	assert.EqualValues(t, flags, st.Flags&flags)
}
