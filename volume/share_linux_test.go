package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/volume"
)

// propagation returns the propagation of the mount at path, "" if nothing is mounted
// there, and the number of mounts there.
func propagation(t *testing.T, path string) (how string, n int) {
	t.Helper()
	info, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for l := range strings.Lines(string(info)) {
		if f := strings.Fields(l); f[4] == path {
			how, n = "private", n+1
			if strings.HasPrefix(f[6], "shared:") {
				how = "shared"
			}
		}
	}
	return how, n
}

// Each start of the agent makes the root rshared; further ones mount nothing.
func TestTheRootIsShared(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts")
	}
	around := t.TempDir()
	require.NoError(t, unix.Mount("around", around, "tmpfs", 0, ""))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(around, unix.MNT_DETACH)) })
	require.NoError(t, unix.Mount("", around, "", unix.MS_PRIVATE|unix.MS_REC, ""))
	dir := filepath.Join(around, "with blank", "root")
	require.NoError(t, os.MkdirAll(dir, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	link := filepath.Join(around, "link")
	require.NoError(t, os.Symlink(dir, link))
	listed := strings.ReplaceAll(dir, " ", `\040`)

	for range 3 { // each start of the agent
		require.NoError(t, volume.MakeShared(link))
		how, n := propagation(t, listed)
		assert.Equal(t, "shared", how)
		assert.Equal(t, 1, n)
		assert.FileExists(t, filepath.Join(dir, "file"))
	}

	// A mount point needs no other mount.
	own := filepath.Join(around, "own")
	require.NoError(t, os.Mkdir(own, 0o750))
	require.NoError(t, unix.Mount("own", own, "tmpfs", 0, ""))
	require.NoError(t, volume.MakeShared(own))
	how, n := propagation(t, own)
	assert.Equal(t, "shared", how)
	assert.Equal(t, 1, n)

	// An existing mount below is not hidden.
	late := filepath.Join(around, "late")
	require.NoError(t, os.MkdirAll(filepath.Join(late, "pods"), 0o750))
	require.NoError(t, unix.Mount("volume", filepath.Join(late, "pods"), "tmpfs", 0, ""))
	require.ErrorContains(t, volume.MakeShared(late), filepath.Join(late, "pods")+" is mounted below it already")
	_, n = propagation(t, late)
	assert.Zero(t, n)

	// Below a shared mount nothing needs to be done.
	require.NoError(t, os.Mkdir(filepath.Join(own, "below"), 0o750))
	require.NoError(t, volume.MakeShared(filepath.Join(own, "below")))
	_, n = propagation(t, filepath.Join(own, "below"))
	assert.Zero(t, n)

	require.ErrorContains(t, volume.MakeShared(filepath.Join(around, "nowhere")), "no such file")
}
