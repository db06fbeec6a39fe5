package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// needMounts skips a test that mounts for real.
func needMounts(t testing.TB) mount.Interface {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	require.NoError(t, unix.Unmount(dir, 0))
	return mount.New("")
}

// bind mounts one directory at another, until the test ends.
func bind(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o755))
	require.NoError(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
}

func write(t testing.TB, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
}

// nothing is removed through a mount, also not through one that was not
// listed, of the same file system.
func TestRemoveTreeGoesThroughNoMount(t *testing.T) {
	real := needMounts(t)
	canary := filepath.Join(t.TempDir(), "canary")
	write(t, canary)
	for name, c := range map[string]struct {
		mounter volume.Mounter
		err     error
	}{
		"unmounted first": {real, nil},
		"not listed":      {new(volumetest.Mounter), volume.ErrMounted},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "with a blank", "volume")
			write(t, filepath.Join(dir, "a", "file"))
			bind(t, filepath.Dir(canary), filepath.Join(dir, "a", "b", "mount"))
			err := volume.RemoveTree(t.Context(), c.mounter, dir)
			assert.ErrorIs(t, err, c.err)
			assert.FileExists(t, canary)
			if c.err == nil {
				assert.NoDirExists(t, dir)
			}
		})
	}
}

func TestRemoveTree(t *testing.T) {
	none := new(volumetest.Mounter)
	root := t.TempDir()
	dir := filepath.Join(root, "v")
	require.NoError(t, volume.RemoveTree(t.Context(), none, dir), "nothing there")
	outside := filepath.Join(root, "outside", "file")
	write(t, outside)
	write(t, filepath.Join(dir, "a", "b", "c"))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "closed"), 0o000))
	require.NoError(t, volume.RemoveTree(t.Context(), none, dir))
	assert.NoDirExists(t, dir)
	assert.FileExists(t, outside)

	// Deeper than there are descriptors to hold.
	deep := dir
	require.NoError(t, os.Mkdir(dir, 0o755))
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	for range 400 {
		require.NoError(t, unix.Mkdirat(at, "directory", 0o755))
		next, err := unix.Openat(at, "directory", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		require.NoError(t, err)
		unix.Close(at)
		at = next
	}
	unix.Close(at)
	require.NoError(t, volume.RemoveTree(t.Context(), none, deep))
	assert.NoDirExists(t, dir)

	write(t, filepath.Join(dir, "f"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, volume.RemoveTree(ctx, none, dir), context.Canceled)
	assert.FileExists(t, filepath.Join(dir, "f"))
	assert.ErrorContains(t, volume.RemoveTree(t.Context(), nil, dir), "Mounter is nil")
}

// ownedBy returns a request for files of a group.
func ownedBy(group int64) *volume.Request { return &volume.Request{FSGroup: &group} }

// vol-65: owners and modes after the walk.
func TestOwn(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	const group = 4321
	dir := filepath.Join(t.TempDir(), "v")
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	write(t, filepath.Join(dir, "a", "b", "file"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script"), nil, 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, ownedBy(group).SetOwnership(t.Context(), dir, false))
	for path, mode := range map[string]fs.FileMode{
		".": fs.ModeDir | fs.ModeSetgid | 0o775, "a": fs.ModeDir | fs.ModeSetgid | 0o775, "a/b": fs.ModeDir | fs.ModeSetgid | 0o775,
		"a/b/file": 0o660, "script": 0o775, "link": fs.ModeSymlink | 0o777,
	} {
		info, err := os.Lstat(filepath.Join(dir, path))
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode(), path)
		assert.EqualValues(t, group, info.Sys().(*syscall.Stat_t).Gid, path)
	}
	info, err := os.Stat(outside)
	require.NoError(t, err)
	assert.EqualValues(t, 0, info.Sys().(*syscall.Stat_t).Gid, "links are not followed")
	assert.Equal(t, fs.FileMode(0o600), info.Mode())

	// Read-only volumes: the group reads.
	write(t, filepath.Join(dir, "ro"))
	require.NoError(t, os.Chmod(filepath.Join(dir, "ro"), 0o400))
	readOnly := ownedBy(group + 1)
	readOnly.Spec = &volume.Spec{ReadOnly: true}
	require.NoError(t, readOnly.SetOwnership(t.Context(), dir, false))
	info, err = os.Stat(filepath.Join(dir, "ro"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o440), info.Mode())

	assert.Error(t, ownedBy(0).SetOwnership(t.Context(), filepath.Join(dir, "script"), false))
	assert.ErrorIs(t, ownedBy(0).SetOwnership(t.Context(), filepath.Join(dir, "none"), false), fs.ErrNotExist)
}

// vol-66: with OnRootMismatch a volume whose root is right is not walked.
func TestOwnOnMismatch(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := filepath.Join(t.TempDir(), "v")
	write(t, filepath.Join(dir, "a"))
	req := ownedBy(4321)
	req.FSGroupPolicy = new(v1.FSGroupChangeOnRootMismatch)
	require.NoError(t, req.SetOwnership(t.Context(), dir, false))
	write(t, filepath.Join(dir, "late"))
	gid := func() uint32 {
		info, err := os.Stat(filepath.Join(dir, "late"))
		require.NoError(t, err)
		return info.Sys().(*syscall.Stat_t).Gid
	}
	require.NoError(t, os.Chown(filepath.Join(dir, "late"), -1, 0))
	require.NoError(t, req.SetOwnership(t.Context(), dir, false))
	assert.EqualValues(t, 0, gid())
	require.NoError(t, os.Chmod(dir, 0o770)) // no setgid
	require.NoError(t, req.SetOwnership(t.Context(), dir, false))
	assert.EqualValues(t, 4321, gid())

	// An interrupted walk leaves the root unchanged, and the next walk continues.
	require.NoError(t, os.Chown(filepath.Join(dir, "late"), -1, 0))
	require.NoError(t, os.Chown(dir, -1, 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, req.SetOwnership(ctx, dir, false), context.Canceled)
	require.NoError(t, req.SetOwnership(t.Context(), dir, false))
	assert.EqualValues(t, 4321, gid())
}

// Many directories, few and many workers: the same comes of it.
func TestOwnInParallel(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := filepath.Join(t.TempDir(), "v")
	for a := range 7 {
		for b := range 7 {
			write(t, filepath.Join(dir, fmt.Sprint(a), fmt.Sprint(b), strings.Repeat("d/", b%5)+"f"))
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, processors := range []int{1, 2, 16} { // 4 workers each
		runtime.GOMAXPROCS(processors)
		group := int64(1000 + i)
		require.NoError(t, ownedBy(group).SetOwnership(t.Context(), dir, false))
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			assert.EqualValues(t, group, info.Sys().(*syscall.Stat_t).Gid, path)
			return nil
		}))
	}
}

// vol-77: blocks count, a file with two names once, other file systems not.
func TestDiskUsage(t *testing.T) {
	dir := t.TempDir()
	data := make([]byte, 64<<10)
	for i := range data {
		data[i] = byte(i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), data, 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	require.NoError(t, err)
	require.NoError(t, sparse.Truncate(1<<40))
	require.NoError(t, sparse.Close())
	if os.Getuid() == 0 {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
		if err := unix.Mount("tmpfs", filepath.Join(dir, "other"), "tmpfs", 0, ""); err == nil {
			t.Cleanup(func() { _ = unix.Unmount(filepath.Join(dir, "other"), unix.MNT_DETACH) })
			write(t, filepath.Join(dir, "other", "file"))
		} else {
			require.NoError(t, os.Remove(filepath.Join(dir, "other")))
		}
	}
	stats, err := volume.DiskUsage(t.Context(), dir)
	require.NoError(t, err)
	assert.EqualValues(t, 3, *stats.InodesUsed, "the directory, one file with two names, one with holes")
	assert.Less(t, *stats.UsedBytes, uint64(1<<20))
	assert.GreaterOrEqual(t, *stats.UsedBytes, uint64(64<<10))
	assert.NotZero(t, *stats.CapacityBytes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = volume.DiskUsage(ctx, dir)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = volume.DiskUsage(t.Context(), filepath.Join(dir, "none"))
	assert.True(t, errors.Is(err, fs.ErrNotExist))
	of, err := volume.FSUsage(dir)
	require.NoError(t, err)
	assert.Equal(t, *stats.CapacityBytes, *of.CapacityBytes)
}

// vol-77, ev-47: a pod does not get out of being measured by directories whose path is
// longer than the kernel takes.
func TestDirectoriesWithEndlessPathsAreMeasured(t *testing.T) {
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	name := strings.Repeat("d", 250)
	for range 40 { // 10,000 bytes
		require.NoError(t, unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	fd, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "file")
	_, err = f.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, unix.Close(at))
	got, err := volume.DiskUsage(t.Context(), dir)
	require.NoError(t, err)
	assert.EqualValues(t, 42, *got.InodesUsed)
	assert.GreaterOrEqual(t, *got.UsedBytes, uint64(1<<20))
}
