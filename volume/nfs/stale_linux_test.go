package nfs_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A staleMounter cannot read a mount point before it is unmounted.
type staleMounter struct {
	*volumetest.Mounter
	stale  bool
	forced []string
}

func (m *staleMounter) IsMountPoint(dir string) (bool, error) {
	if m.stale {
		return false, &os.PathError{Op: "lstat", Path: dir, Err: syscall.ESTALE}
	}
	return m.Mounter.IsMountPoint(dir)
}

func (m *staleMounter) UnmountWithForce(dir string, timeout time.Duration) error {
	m.stale = false
	m.forced = append(m.forced, timeout.String())
	return m.Unmount(dir)
}

// The server no longer has the export: the volume of the pod is removed nevertheless.
func TestAStaleMountIsUnmounted(t *testing.T) {
	mounter := &staleMounter{Mounter: new(volumetest.Mounter)}
	p := plugin(t, mounter)
	req := volumetest.Request(t, p, inline("a", "/", false))
	_, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	mounter.stale = true
	_, err = p.SetUp(t.Context(), req)
	require.ErrorIs(t, err, syscall.ESTALE)
	require.NoError(t, p.TearDown(t.Context(), req.Place))
	assert.Equal(t, []string{"1m0s"}, mounter.forced)
	assert.Empty(t, mounter.Below(req.RootDir))
}
