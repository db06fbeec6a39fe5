package emptydir_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

type countingMounter struct {
	mount.Interface
	lists int
}

func (m *countingMounter) List() ([]mount.MountPoint, error) {
	m.lists++
	return m.Interface.List()
}

// A volume in memory, which is checked with each sync of its pod, does not list the
// mounts of the machine, whose number does not depend on the pod.
func TestMemoryThatStaysAsItIsListsNoMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	for _, limit := range []string{"", "1Mi"} {
		m := &countingMounter{Interface: mount.New("")}
		p, err := emptydir.New(emptydir.Config{Mounter: m})
		require.NoError(t, err)
		req := volumetest.Request(t, p, spec(v1.StorageMediumMemory, limit))
		t.Cleanup(func() { _ = p.TearDown(t.Context(), req.Place) })
		mounted, err := p.SetUp(t.Context(), req)
		require.NoError(t, err)
		req.Refresh = true
		for range 3 {
			_, err = p.SetUp(t.Context(), req)
			require.NoError(t, err)
		}
		_, err = p.Stats(t.Context(), req.Place, mounted.Volume)
		require.NoError(t, err)
		assert.Zero(t, m.lists)

		req.Spec = spec(v1.StorageMediumMemory, "2Mi") // it is mounted with another size once
		for range 3 {
			_, err = p.SetUp(t.Context(), req)
			require.NoError(t, err)
		}
		var s syscall.Statfs_t
		require.NoError(t, syscall.Statfs(mounted.Path, &s))
		assert.EqualValues(t, 2<<20, int64(s.Blocks)*s.Bsize)
		assert.LessOrEqual(t, m.lists, 1)
		require.NoError(t, p.TearDown(t.Context(), req.Place))
		assert.LessOrEqual(t, m.lists, 1)
	}
}
