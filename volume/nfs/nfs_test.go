package nfs_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/nfs"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestThePluginKeepsTheContract(t *testing.T) {
	mounter := new(volumetest.Mounter)
	volumetest.TestPlugin(t, volumetest.Suite{
		New:      func(string) volume.Plugin { return plugin(t, mounter) },
		Spec:     inline("nfs.example.com", "/export", false),
		Mounter:  mounter,
		ReadOnly: true, // a write to an in-memory mount lands in the directory below
	})
}

func plugin(t *testing.T, mounter volume.Mounter) *nfs.Plugin {
	t.Helper()
	p, err := nfs.New(nfs.Config{Mounter: mounter})
	require.NoError(t, err)
	return p
}

func inline(server, path string, readOnly bool) *volume.Spec {
	return &volume.Spec{Volume: &v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: server, Path: path, ReadOnly: readOnly}}}}
}

func persistent(readOnlyExport, readOnlyClaim bool, options ...string) *volume.Spec {
	pv := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		MountOptions:           options,
		PersistentVolumeSource: v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "10.0.0.1", Path: "/p", ReadOnly: readOnlyExport}},
	}}
	pv.Name = "pv-1"
	return &volume.Spec{Volume: &v1.Volume{Name: "data"}, PV: pv, ReadOnly: readOnlyClaim}
}

// vol-83
func TestMounts(t *testing.T) {
	for name, c := range map[string]struct {
		spec    *volume.Spec
		device  string
		options []string
	}{
		"inline":            {inline("nfs.example.com", "/export", false), "nfs.example.com:/export", nil},
		"inline, read-only": {inline("nfs.example.com", "/export", true), "nfs.example.com:/export", []string{"ro"}},
		"IPv6":              {inline("fd00::1", "/", false), "[fd00::1]:/", nil},
		"options":           {persistent(false, false, "nfsvers=4.2", "hard", "hard"), "10.0.0.1:/p", []string{"nfsvers=4.2", "hard"}},
		"claim read-only":   {persistent(false, true, "hard", "ro"), "10.0.0.1:/p", []string{"ro", "hard"}},
		"export read-only":  {persistent(true, false), "10.0.0.1:/p", []string{"ro"}},
	} {
		t.Run(name, func(t *testing.T) {
			mounter := new(volumetest.Mounter)
			p := plugin(t, mounter)
			req := volumetest.Request(t, p, c.spec)
			for range 2 {
				mounted, err := p.SetUp(t.Context(), req)
				require.NoError(t, err)
				assert.Equal(t, req.Dir(), mounted.Path)
				assert.Equal(t, len(c.options) > 0 && c.options[0] == "ro", mounted.ReadOnly)
				assert.False(t, mounted.SELinuxRelabel)
			}
			points, err := mounter.List()
			require.NoError(t, err)
			require.Len(t, points, 1)
			assert.Equal(t, mount.MountPoint{Device: c.device, Path: points[0].Path, Type: "nfs", Opts: c.options}, points[0])
			require.NoError(t, p.TearDown(t.Context(), req.Place))
			assert.NoDirExists(t, req.Dir())
		})
	}
}

func TestInvalidExports(t *testing.T) {
	mounter := new(volumetest.Mounter)
	p := plugin(t, mounter)
	for want, spec := range map[string]*volume.Spec{
		`nfs: server is empty`:                        inline("", "/", false),
		`nfs: server "-osuid" is invalid`:             inline("-osuid", "/", false),
		`nfs: server "a b" is invalid`:                inline("a b", "/", false),
		`nfs: server "a/b" is invalid`:                inline("a/b", "/", false),
		`nfs: path "export" must be an absolute path`: inline("a", "export", false),
		`nfs: path "/\x00" must be an absolute path`:  inline("a", "/\x00", false),
	} {
		req := volumetest.Request(t, p, spec)
		_, err := p.SetUp(t.Context(), req)
		require.EqualError(t, err, want)
		assert.NoDirExists(t, req.PodDir())
	}
}

func TestAMountThatFailsIsReverted(t *testing.T) {
	mounter := &volumetest.Mounter{Fault: func(act, _ string) error {
		if act == "mount" {
			return volumetest.ErrFault
		}
		return nil
	}}
	p := plugin(t, mounter)
	req := volumetest.Request(t, p, inline("a", "/", false))
	_, err := p.SetUp(t.Context(), req)
	require.ErrorIs(t, err, volumetest.ErrFault)
	require.ErrorContains(t, err, "nfs: mount a:/: ")
	assert.NoDirExists(t, req.Dir())
}

func TestConstructSpec(t *testing.T) {
	p := plugin(t, new(volumetest.Mounter))
	req := volumetest.Request(t, p, inline("a", "/", false))
	_, err := p.ConstructSpec(req.Place)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = p.SetUp(t.Context(), req)
	require.NoError(t, err)
	spec, err := p.ConstructSpec(req.Place)
	require.NoError(t, err)
	assert.Equal(t, "data", spec.DirName())
	assert.True(t, p.CanSupport(spec))
}

func TestNewChecksItsConfig(t *testing.T) {
	_, err := nfs.New(nfs.Config{})
	require.EqualError(t, err, "nfs: Config.Mounter is nil")
}

// The mounters of processes that may and that may not mount.
func TestTheMountersOfAnAgentAreAccepted(t *testing.T) {
	for _, mounts := range []bool{true, false} {
		_, err := nfs.New(nfs.Config{Mounter: volume.NewMounter(mounts)})
		require.NoError(t, err, "mounts %v", mounts)
	}
}
