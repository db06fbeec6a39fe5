package emptydir_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// The kernel's own tmpfs: its size, the effect of a remount, an fsGroup (vol-47), and
// that nothing is removed through a mount inside it (vol-48).
func TestMemoryOnTheMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	p, err := emptydir.New(emptydir.Config{Mounter: mount.New("")})
	require.NoError(t, err)
	req := volumetest.Request(t, p, spec(v1.StorageMediumMemory, "1Mi"))
	group := int64(4321)
	req.FSGroup = &group
	mounted, err := p.SetUp(t.Context(), req)
	if err != nil {
		t.Skipf("mounting is not permitted on this machine: %v", err)
	}
	t.Cleanup(func() { _ = p.TearDown(t.Context(), req.Place) })
	size := func() int64 {
		var s syscall.Statfs_t
		require.NoError(t, syscall.Statfs(mounted.Path, &s))
		return int64(s.Blocks) * s.Bsize
	}
	assert.EqualValues(t, 1<<20, size())
	info, err := os.Stat(mounted.Path)
	require.NoError(t, err)
	assert.EqualValues(t, group, info.Sys().(*syscall.Stat_t).Gid)
	assert.NotZero(t, info.Mode()&os.ModeSetgid)

	require.NoError(t, os.WriteFile(filepath.Join(mounted.Path, "f"), []byte("kept"), 0o600))
	req.Refresh = true
	req.Spec = spec(v1.StorageMediumMemory, "2Mi")
	_, err = p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.EqualValues(t, 2<<20, size())
	assert.FileExists(t, filepath.Join(mounted.Path, "f"))
	stats, err := p.Stats(t.Context(), req.Place, mounted.Volume)
	require.NoError(t, err)
	assert.EqualValues(t, 2<<20, *stats.CapacityBytes)
	got, err := p.ConstructSpec(req.Place)
	require.NoError(t, err)
	assert.Equal(t, v1.StorageMediumMemory, got.Volume.EmptyDir.Medium)

	canary := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(canary, "alive"), nil, 0o600))
	inside := filepath.Join(mounted.Path, "inside")
	require.NoError(t, os.Mkdir(inside, 0o700))
	require.NoError(t, mount.New("").Mount(canary, inside, "", []string{"bind"}))
	require.NoError(t, p.TearDown(t.Context(), req.Place))
	assert.NoDirExists(t, mounted.Path)
	assert.FileExists(t, filepath.Join(canary, "alive"))
}
