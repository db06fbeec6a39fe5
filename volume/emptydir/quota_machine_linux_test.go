package emptydir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// quotaDir returns a directory on a file system with project quotas: the one that KUBEPARTS_QUOTA_DIR
// names, or an ext4 in a file. The test is skipped where the kernel, or the machine, has none.
func quotaDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("KUBEPARTS_QUOTA_DIR"); dir != "" {
		return dir
	}
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 64<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "project,quota", image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4 cannot make a file system with project quotas: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop,prjquota", image, dir).CombinedOutput(); err != nil {
		t.Skipf("the kernel cannot mount ext4 with project quotas (CONFIG_QUOTA, CONFIG_QFMT_V2): %v: %s", err, out)
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("umount", dir).Run()) })
	return dir
}

// vol-78: the quotas of a real file system agree with the size of the files.
func TestProjectQuotasOnTheMachine(t *testing.T) {
	root, q := quotaDir(t), emptydir.NewProjectQuotas()
	var dirs []string
	for _, name := range []string{"a", "b"} {
		dir, err := os.MkdirTemp(root, name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		dirs = append(dirs, dir)
		_, _, err = q.Usage(dir)
		require.ErrorIs(t, err, errors.ErrUnsupported, "not assigned")
		require.NoError(t, q.Assign(dir))
		require.NoError(t, q.Assign(dir), "it is idempotent")
	}
	write := func(path string, size int) {
		f, err := os.Create(path)
		require.NoError(t, err)
		_, err = f.Write(make([]byte, size))
		require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	}
	empty, inodes, err := q.Usage(dirs[0])
	require.NoError(t, err)
	assert.EqualValues(t, 1, inodes, "the directory")
	sub := filepath.Join(dirs[0], "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	write(filepath.Join(dirs[0], "f"), 1<<20)
	write(filepath.Join(sub, "f"), 2<<20)
	used, inodes, err := q.Usage(dirs[0])
	require.NoError(t, err)
	assert.EqualValues(t, 4, inodes)
	assert.InDelta(t, 3<<20, used-empty, 64<<10)
	_, inodes, err = q.Usage(dirs[1])
	require.NoError(t, err)
	assert.EqualValues(t, 1, inodes, "each directory has its own")
	_, _, err = q.Usage(sub)
	require.ErrorIs(t, err, errors.ErrUnsupported, "its usage is that of the volume")
	require.ErrorIs(t, os.Rename(filepath.Join(dirs[0], "f"), filepath.Join(dirs[1], "f")), unix.EXDEV)

	later := emptydir.NewProjectQuotas() // of a later agent
	again, _, err := later.Usage(dirs[0])
	require.NoError(t, err)
	assert.Equal(t, used, again)
	require.NoError(t, os.RemoveAll(sub))
	require.Eventually(t, func() bool { // XFS frees removed files later
		_, inodes, err = q.Usage(dirs[0])
		require.NoError(t, err)
		return inodes == 2
	}, time.Minute, 10*time.Millisecond)
}

// A volume is set up, measured and removed with the quotas of a real file system.
func TestVolumesWithQuotasOnTheMachine(t *testing.T) {
	root, own := quotaDir(t), false
	p, err := emptydir.New(emptydir.Config{Mounter: new(volumetest.Mounter), Quotas: emptydir.NewProjectQuotas()})
	require.NoError(t, err)
	req := volumetest.Request(t, p, spec("", ""))
	req.RootDir, err = os.MkdirTemp(root, "node")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(req.RootDir) })
	req.Pod.Spec.HostUsers = &own
	for range 3 { // the ID of a removed volume is free again
		mounted, err := p.SetUp(t.Context(), req)
		require.NoError(t, err)
		secret := filepath.Join(mounted.Path, "hidden")
		require.NoError(t, os.WriteFile(secret, make([]byte, 1<<20), 0o600))
		f, err := os.Open(secret)
		require.NoError(t, err)
		require.NoError(t, errors.Join(f.Sync(), os.Remove(secret))) // du does not find a file that is open
		stats, err := p.Stats(t.Context(), req.Place, mounted.Volume)
		require.NoError(t, err)
		assert.EqualValues(t, 2, *stats.InodesUsed)
		assert.GreaterOrEqual(t, *stats.UsedBytes, uint64(1<<20))
		require.NoError(t, f.Close())
		require.NoError(t, p.TearDown(t.Context(), req.Place))
		assert.NoDirExists(t, mounted.Path)
	}
}
