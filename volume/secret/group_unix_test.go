//go:build !windows

package secret_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/atomic"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-65: the group may read, and its permission does not cause a rewrite of the volume.
func TestAGroupReadsTheFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	p := plugin(t, volumetest.NewObjects(volumetest.Secret("default", "tls", map[string]string{"key": "k"})), new(volumetest.Mounter))
	mode, group := int32(0o400), int64(4321)
	req := volumetest.Request(t, p, spec(v1.SecretVolumeSource{SecretName: "tls", DefaultMode: &mode}))
	req.FSGroup = &group
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(mounted.Path, "key"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o440), info.Mode().Perm())
	assert.EqualValues(t, group, info.Sys().(*syscall.Stat_t).Gid)
	before, err := atomic.Current(mounted.Path)
	require.NoError(t, err)
	_, err = p.SetUp(t.Context(), req)
	require.NoError(t, err)
	after, err := atomic.Current(mounted.Path)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}
