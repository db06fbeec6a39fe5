package volume_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// vol-69, vol-70: the path resolved in the volume is bound, and nothing else.
func TestSubPaths(t *testing.T) {
	real := needMounts(t)
	n := start(t, nil, func(c *volume.Config) { c.Mounter = real })
	p := pod("p", "data")
	got, err := n.Mount(t.Context(), p)
	require.NoError(t, err)
	root := got["data"].Path
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"))
	write(t, filepath.Join(root, "dir", "inside"))
	require.NoError(t, os.Chmod(root, os.ModeSetgid|0o770))
	require.NoError(t, os.Symlink("dir", filepath.Join(root, "in")))
	require.NoError(t, os.Symlink("../"+filepath.Base(root)+"/dir", filepath.Join(root, "around")))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "out")))
	require.NoError(t, os.Symlink(filepath.Join(root, "dir"), filepath.Join(root, "absolute")))
	require.NoError(t, os.Symlink("../../../..", filepath.Join(root, "up")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(root, "dangling")))
	index := 0
	sub := func(path string) (string, error) {
		index++
		return n.SubPath(t.Context(), runtime.SubPath{PodUID: "p", Volume: "data", VolumePath: root, Container: "c", Index: index, Path: path})
	}
	at := filepath.Join(n.root, "pods/p/volume-subpaths/data/c/1")
	for path, file := range map[string]string{"dir": "inside", "in": "inside", "absolute": "inside", "around": "inside", ".": "dir/inside", "dir/inside": "", "new/deep": ""} {
		index = 0
		got, err := sub(path)
		require.NoError(t, err, path)
		assert.Equal(t, at, got)
		points, err := real.IsMountPoint(got)
		require.NoError(t, err)
		assert.True(t, points, path)
		var there, here unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(root, path), &there))
		require.NoError(t, unix.Stat(got, &here))
		assert.Equal(t, there.Ino, here.Ino, path)
		if file != "" {
			assert.FileExists(t, filepath.Join(got, file))
		}
	}
	for _, made := range []string{"new", "new/deep"} {
		info, err := os.Stat(filepath.Join(root, made))
		require.NoError(t, err)
		assert.Equal(t, os.ModeDir|os.ModeSetgid|0o770, info.Mode(), "the mode of the volume's root")
	}
	for _, path := range []string{"out", "out/secret", "up", "up/etc", "dangling", "dir/inside/x", "../x", "dir/../../x", "dir/..", "/etc", "a\x00b", "out/new"} {
		_, err := sub(path)
		assert.Error(t, err, "%q", path)
	}
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing was made outside")

	// The same request returns the existing mount (vol-70); a different one replaces
	// it.
	index = 0
	first, err := sub("dir")
	require.NoError(t, err)
	before := below(t, real, n.root)
	index = 0
	again, err := sub("in")
	require.NoError(t, err)
	assert.Equal(t, first, again)
	after := below(t, real, n.root)
	assert.Len(t, after, len(before))
	assert.NotEmpty(t, after)

	require.NoError(t, n.Unmount(t.Context(), p)) // vol-23
	assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
	for _, container := range []string{"..", "", "a/b"} {
		_, err := n.SubPath(t.Context(), runtime.SubPath{PodUID: "p", Volume: "data", VolumePath: root, Container: container, Path: "x"})
		assert.Error(t, err)
	}
}

// below lists the mounts below a directory: other processes mount elsewhere.
func below(t *testing.T, m volume.Mounter, dir string) (paths []string) {
	t.Helper()
	points, err := m.List()
	require.NoError(t, err)
	for _, point := range points {
		if strings.HasPrefix(point.Path, dir+"/") {
			paths = append(paths, point.Path)
		}
	}
	return paths
}

// vol-70: a directory is constantly swapped for a link out of the volume.
func TestSubPathsWhileDirectoriesAreSwappedForLinks(t *testing.T) {
	real := needMounts(t)
	n := start(t, nil, func(c *volume.Config) { c.Mounter = real })
	p := pod("p", "data")
	got, err := n.Mount(t.Context(), p)
	require.NoError(t, err)
	root := got["data"].Path
	outside := t.TempDir()
	write(t, filepath.Join(outside, "sub", "secret"))
	write(t, filepath.Join(root, "real", "sub", "inside"))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "a"), 0o755))
	var outsideBefore unix.Stat_t
	require.NoError(t, unix.Stat(filepath.Join(outside, "sub"), &outsideBefore))

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		a, real, link := filepath.Join(root, "a"), filepath.Join(root, "real"), filepath.Join(root, "link")
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, real, unix.RENAME_EXCHANGE)
		}
	})
	bound, refused := 0, 0
	for i := range 150 {
		at, err := n.SubPath(t.Context(), runtime.SubPath{PodUID: "p", Volume: "data", VolumePath: root, Container: "c", Index: i % 7, Path: "a/sub"})
		if err != nil {
			refused++
			continue
		}
		bound++
		assert.NoFileExists(t, filepath.Join(at, "secret"))
		var st unix.Stat_t
		require.NoError(t, unix.Stat(at, &st))
		require.NotEqual(t, outsideBefore.Ino, st.Ino)
	}
	t.Logf("%d bound, %d refused", bound, refused)
	cancel()
	wg.Wait()
	entries, err := os.ReadDir(filepath.Join(outside, "sub"))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.NoError(t, n.Unmount(t.Context(), p))
}

// vol-42: a subPath mount of a file keeps its content when a new file replaces it.
func TestASubPathNeverChanges(t *testing.T) {
	real := needMounts(t)
	n := start(t, nil, func(c *volume.Config) { c.Mounter = real })
	p := pod("p", "conf")
	got, err := n.Mount(t.Context(), p)
	require.NoError(t, err)
	file := filepath.Join(got["conf"].Path, "key")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	at, err := n.SubPath(t.Context(), runtime.SubPath{PodUID: "p", Volume: "conf", VolumePath: got["conf"].Path, Container: "c", Path: "key"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file+".new", []byte("new"), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
	content, err := os.ReadFile(at)
	require.NoError(t, err)
	assert.Equal(t, "old", string(content))
	require.NoError(t, n.Unmount(t.Context(), p))
}
