package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// The cost of volumes and sub-paths does not grow with the mounts of the machine:
// these are not listed.
func TestMountsAreNotListedForEachVolume(t *testing.T) {
	m := &countingMounter{Interface: needMounts(t)}
	n := start(t, &node{root: t.TempDir(), plugin: &volumetest.Plugin{Mounter: m}}, func(c *volume.Config) { c.Mounter = m })
	p := pod("p", "a", "b")
	got, err := n.Mount(t.Context(), p)
	require.NoError(t, err)
	write(t, filepath.Join(got["a"].Path, "dir", "file"))
	for _, path := range []string{"dir", "dir/file"} {
		for range 2 { // the second container finds it bound
			_, err := n.SubPath(t.Context(), runtime.SubPath{PodUID: "p", Volume: "a", VolumePath: got["a"].Path, Container: "c" + filepath.Base(path), Path: path})
			require.NoError(t, err)
		}
	}
	assert.Len(t, below(t, m.Interface, n.root), 4)
	require.NoError(t, n.Unmount(t.Context(), p))
	assert.Empty(t, below(t, m.Interface, n.root))
	assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
	assert.Zero(t, m.lists.Load())
}

// Stacked mounts and mounts below a volume are all unmounted before it is removed, and
// a link in place of a volume unmounts nothing.
func TestRemoveTreeUnmountsStackedAndNestedMounts(t *testing.T) {
	real := needMounts(t)
	tmpfs := func(t *testing.T, dir string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	for name, make := range map[string]func(t *testing.T, dir string){
		"one":                     func(t *testing.T, dir string) { tmpfs(t, dir) },
		"stacked":                 func(t *testing.T, dir string) { tmpfs(t, dir); tmpfs(t, dir); tmpfs(t, dir) },
		"nested":                  func(t *testing.T, dir string) { tmpfs(t, filepath.Join(dir, "a/b")) },
		"nested in a mount":       func(t *testing.T, dir string) { tmpfs(t, dir); tmpfs(t, filepath.Join(dir, "a")) },
		"nested, and then hidden": func(t *testing.T, dir string) { tmpfs(t, filepath.Join(dir, "a")); tmpfs(t, dir) },
		"a file": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "target"))
			require.NoError(t, unix.Mount("/proc/self/status", filepath.Join(dir, "target"), "", unix.MS_BIND, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "volume")
			make(t, dir)
			require.NoError(t, volume.RemoveTree(t.Context(), real, dir))
			assert.NoDirExists(t, dir)
			assert.Empty(t, below(t, real, filepath.Dir(dir)))
		})
	}
	t.Run("a link", func(t *testing.T) {
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		tmpfs(t, elsewhere)
		write(t, filepath.Join(elsewhere, "file"))
		link := filepath.Join(t.TempDir(), "volume")
		require.NoError(t, os.Symlink(elsewhere, link))
		require.NoError(t, volume.RemoveTree(t.Context(), real, link))
		assert.NoFileExists(t, link)
		assert.FileExists(t, filepath.Join(elsewhere, "file"))
	})
}

// A sub-path is removed although there are mounts below it, or on it, and although it
// is bound several times.
func TestASubPathIsRemovedWithTheMountsOnIt(t *testing.T) {
	real := needMounts(t)
	n := start(t, nil, func(c *volume.Config) { c.Mounter = real })
	p := pod("p", "data")
	got, err := n.Mount(t.Context(), p)
	require.NoError(t, err)
	write(t, filepath.Join(got["data"].Path, "dir", "in", "file"))
	for i := range 3 {
		at, err := n.SubPath(t.Context(), runtime.SubPath{PodUID: "p", Volume: "data", VolumePath: got["data"].Path, Container: "c", Index: i, Path: "dir"})
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(n.root, "pods/p/volume-subpaths/data/c", fmt.Sprint(i)), at)
		switch i {
		case 1:
			require.NoError(t, unix.Mount("tmpfs", filepath.Join(at, "in"), "tmpfs", 0, ""))
		case 2:
			require.NoError(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
		}
	}
	require.NoError(t, n.Unmount(t.Context(), p))
	assert.Empty(t, below(t, real, n.root))
	assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
}
