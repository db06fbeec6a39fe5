package local_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// halfMounter binds, and then fails to make that read-only.
type halfMounter struct {
	*volumetest.Mounter
	fail bool
}

func (m *halfMounter) Mount(source, target, fstype string, options []string) error {
	if !m.fail {
		return m.Mounter.Mount(source, target, fstype, options)
	}
	if err := m.Mounter.Mount(source, target, fstype, slices.DeleteFunc(slices.Clone(options), func(o string) bool { return o == "ro" })); err != nil {
		return err
	}
	return volumetest.ErrFault
}

// A read-only volume whose mount failed half-way, when it could be written to, is mounted
// again: it is not taken for one that is ready.
func TestAVolumeThatWasBoundHalfIsBoundAgain(t *testing.T) {
	mounter := &halfMounter{Mounter: new(volumetest.Mounter), fail: true}
	root := t.TempDir()
	p, err := local.New(local.Config{RootDir: root, Mounter: mounter})
	require.NoError(t, err)
	s := spec(t.TempDir())
	s.ReadOnly = true
	req := volumetest.Request(t, p, s)
	req.RootDir = root
	_, err = p.SetUp(t.Context(), req)
	require.ErrorIs(t, err, volumetest.ErrFault)
	mounter.fail = false
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	points, err := mounter.List()
	require.NoError(t, err)
	require.Len(t, points, 1)
	assert.Equal(t, []string{"bind", "ro"}, points[0].Opts)
	assert.True(t, mounted.ReadOnly)
	assert.False(t, mounted.SELinuxRelabel, "files that the pod cannot write are not relabeled")
	require.NoError(t, p.TearDown(t.Context(), req.Place))
	assert.Empty(t, mounter.Below(root))
}
