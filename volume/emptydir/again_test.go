package emptydir_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-44: a directory that an agent had made when it was killed, before it changed
// what the umask had left of its mode, is open to all users in the end; the mode that
// its pod gave it later stays.
func TestADirectoryThatWasHalfMadeIsOpenToAll(t *testing.T) {
	plugin, err := emptydir.New(emptydir.Config{Mounter: new(volumetest.Mounter)})
	require.NoError(t, err)
	spec := &volume.Spec{Volume: &v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)}}}
	req := volumetest.Request(t, plugin, spec)
	require.NoError(t, os.MkdirAll(req.Dir(), 0o755))
	mode := func() os.FileMode {
		_, err := plugin.SetUp(t.Context(), req)
		require.NoError(t, err)
		info, err := os.Stat(req.Dir())
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	assert.Equal(t, os.FileMode(0o777), mode())
	require.NoError(t, os.Chmod(req.Dir(), 0o700))
	assert.Equal(t, os.FileMode(0o700), mode())
}
