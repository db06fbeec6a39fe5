package csi_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
)

// vol-65, vol-67: a volume that is published, but whose files did not all get their
// group, is not ready: the interrupted change of ownership is completed.
func TestAPublishedVolumeGetsItsGroupAllTheSame(t *testing.T) {
	w := newWorld(t, csi.Config{}, csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	req := w.request(t, persistent("vol-1"))
	mounted, _ := w.published(t, req) // as by an agent that was killed then
	group := int64(os.Getegid())
	req.FSGroup = &group
	file := filepath.Join(mounted.Path, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := w.SetUp(t.Context(), req)
	require.NoError(t, err)
	info, err := os.Stat(mounted.Path)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&fs.ModeSetgid)
	info, err = os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o660), info.Mode().Perm())

	require.NoError(t, os.Chmod(file, 0o600)) // by its pod; a restart of the agent is no reason to walk again
	_, err = w.SetUp(t.Context(), req)
	require.NoError(t, err)
	info, err = os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

// vol-61: two pods of a node that share a device are both unpublished by the driver.
func TestTwoPodsOfOneDeviceAreBothUnpublished(t *testing.T) {
	for name, without := range map[string][]csipb.NodeServiceCapability_RPC_Type{
		"staged": nil, "not staged": {csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, csi.Config{}, without...)
			s := persistent("vol-1")
			block := v1.PersistentVolumeBlock
			s.PV.Spec.VolumeMode, s.Block = &block, true
			one := w.request(t, s)
			require.NoError(t, w.Stage(t.Context(), one))
			var places []volume.Place
			for _, uid := range []types.UID{"u1", "u2"} {
				req := one
				req.PodUID = uid
				_, err := w.SetUp(t.Context(), req)
				require.NoError(t, err)
				places = append(places, req.Place)
			}
			assert.Len(t, w.driver.Volume("vol-1").Published, 2)
			for i, at := range places {
				require.NoError(t, w.TearDown(t.Context(), at))
				assert.Len(t, w.driver.Volume("vol-1").Published, 1-i)
			}
			require.NoError(t, w.Unstage(t.Context(), s))
			assert.Empty(t, w.driver.InUse())
			assert.NoDirExists(t, filepath.Join(w.root, "plugins/kubernetes.io/csi/volumeDevices", s.PV.Name))
		})
	}
}
