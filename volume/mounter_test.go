package volume_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestAMounterWithoutMountsLeavesDirectories(t *testing.T) {
	m := volume.NewMounter(false)
	for name, mount := range map[string]func(fstype string) error{
		"Mount":                        func(f string) error { return m.Mount("none", "/t", f, nil) },
		"MountSensitive":               func(f string) error { return m.MountSensitive("none", "/t", f, nil, nil) },
		"MountSensitiveWithoutSystemd": func(f string) error { return m.MountSensitiveWithoutSystemd("none", "/t", f, nil, nil) },
		"MountSensitiveWithoutSystemdWithMountFlags": func(f string) error {
			return m.MountSensitiveWithoutSystemdWithMountFlags("none", "/t", f, nil, nil, nil)
		},
	} {
		require.NoError(t, mount("tmpfs"), name)
		require.EqualError(t, mount("ext4"), `mount /t of type "ext4": permission denied: only root on Linux may mount`, name)
	}
	mounted, err := m.IsMountPoint("/t")
	require.NoError(t, err)
	assert.False(t, mounted)
	not, err := m.IsLikelyNotMountPoint("/proc")
	require.NoError(t, err)
	assert.True(t, not)
	all, err := m.List()
	require.NoError(t, err)
	assert.Empty(t, all)
	assert.NoError(t, m.Unmount("/t"))
}

// A runtime then resolves the path itself.
func TestSubPathsAreNotSupportedWithoutMounts(t *testing.T) {
	m, err := volume.New(volume.Config{RootDir: t.TempDir(), Mounter: volume.NewMounter(false), Plugins: []volume.Plugin{new(volumetest.Plugin)}})
	require.NoError(t, err)
	_, err = m.SubPath(t.Context(), runtime.SubPath{PodUID: "p", Volume: "data", VolumePath: t.TempDir(), Container: "c", Path: "sub"})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
