package untrusted

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestADirectoryOnAnotherMountIsNotOpened(t *testing.T) {
	fd, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Mkdirat(fd, "d", 0o755))
	sub, err := openSameMountByID(fd, "d")
	require.NoError(t, err)
	unix.Close(sub)
	root, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	defer unix.Close(root)
	_, err = openSameMountByID(root, "proc")
	assert.ErrorIs(t, err, ErrMounted)
	_, err = openSameMount(root, "proc")
	assert.ErrorIs(t, err, ErrMounted)
}

func TestRemoveTreeStopsAtMounts(t *testing.T) {
	canary, tree := filepath.Join(t.TempDir(), "canary"), filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.WriteFile(canary, []byte("x"), 0o600))
	for at, source := range map[string]string{"directory": filepath.Dir(canary), "file": canary, ".": filepath.Dir(canary)} {
		t.Run(at, func(t *testing.T) {
			target := filepath.Join(tree, at)
			if at == "file" {
				require.NoError(t, os.MkdirAll(tree, 0o755))
				require.NoError(t, os.WriteFile(target, nil, 0o600))
			} else {
				require.NoError(t, os.MkdirAll(target, 0o755))
			}
			err := unix.Mount(source, target, "", unix.MS_BIND, "")
			if err != nil {
				t.Skipf("bind mounts need privileges: %v", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
			assert.ErrorIs(t, RemoveTree(t.Context(), tree), ErrMounted)
			assert.FileExists(t, canary)
			require.NoError(t, unix.Unmount(target, 0))
			require.NoError(t, RemoveTree(t.Context(), tree))
			assert.NoDirExists(t, tree)
			assert.FileExists(t, canary)
		})
	}
}
