package nfs_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A silentMounter is a mounter whose kernel mounts cannot be read: a stat of one does not return.
type silentMounter struct {
	*volumetest.Mounter
	t *testing.T
}

func (m silentMounter) IsMountPoint(dir string) (bool, error) {
	var st, parent unix.Stat_t
	if unix.Lstat(dir, &st) == nil && unix.Lstat(dir+"/..", &parent) == nil && st.Dev != parent.Dev {
		m.t.Error("the mounted file system was accessed")
	}
	return m.Mounter.IsMountPoint(dir)
}

func (m silentMounter) UnmountWithForce(dir string, _ time.Duration) error {
	return unix.Unmount(dir, unix.MNT_DETACH)
}

// A mount of a server that does not answer is found, and forced to be unmounted, without a call that
// waits for the server.
func TestAServerThatDoesNotAnswerIsNotAsked(t *testing.T) {
	mounter := silentMounter{new(volumetest.Mounter), t}
	p := plugin(t, mounter)
	req := volumetest.Request(t, p, inline("a", "/", false))
	dir := req.Dir()
	require.NoError(t, os.MkdirAll(dir, 0o750))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	_, err := p.ConstructSpec(req.Place)
	require.NoError(t, err)
	_, err = p.SetUp(t.Context(), req) // by an earlier agent
	require.NoError(t, err)
	require.NoError(t, p.TearDown(t.Context(), req.Place))
	assert.NoDirExists(t, dir)
}
