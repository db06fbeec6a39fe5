package emptydir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-44: a directory whose agent was killed after Mkdir and before Chmod has the
// umask's mode; the next SetUp opens it to all users. A mode that its pod set later is
// kept.
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

// The kernel lists a blank in a path as \040.
type kernel struct{ *volumetest.Mounter }

func (k kernel) List() ([]mount.MountPoint, error) {
	points, err := k.Mounter.List()
	for i := range points {
		points[i].Path = strings.ReplaceAll(points[i].Path, " ", `\040`)
	}
	return points, err
}

func TestMemoryInADirectoryWithABlankIsMountedOnce(t *testing.T) {
	mounter := new(volumetest.Mounter)
	plugin, err := emptydir.New(emptydir.Config{Mounter: kernel{mounter}})
	require.NoError(t, err)
	req := volumetest.Request(t, plugin, spec(v1.StorageMediumMemory, "1Mi"))
	req.RootDir = filepath.Join(req.RootDir, "my node")
	for range 2 {
		_, err = plugin.SetUp(t.Context(), req)
		require.NoError(t, err)
	}
	points, err := mounter.List()
	require.NoError(t, err)
	assert.Len(t, points, 1)
	got, err := plugin.ConstructSpec(req.Place)
	require.NoError(t, err)
	assert.Equal(t, v1.StorageMediumMemory, got.Volume.EmptyDir.Medium)
	require.NoError(t, plugin.TearDown(t.Context(), req.Place))
}
