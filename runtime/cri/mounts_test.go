package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

func TestSubPathsStayInTheVolume(t *testing.T) {
	volume, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	outside := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(volume, "dir"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(volume, "file"), nil, 0o644))
	require.NoError(t, os.Symlink("dir", filepath.Join(volume, "in")))
	require.NoError(t, os.Symlink(outside, filepath.Join(volume, "out")))
	require.NoError(t, os.Symlink("../..", filepath.Join(volume, "up")))
	for sub, want := range map[string]string{ // vol-69
		"dir": "dir", "file": "file", "in": "dir", "new/deep": "new/deep", "in/new": "dir/new", ".": ".",
	} {
		got, err := inVolume(volume, sub)
		require.NoError(t, err, sub)
		assert.Equal(t, filepath.Join(volume, want), got)
	}
	for _, sub := range []string{"..", "../x", "dir/../../x", "/etc", "out", "out/x", "up", "up/x", "file/x"} {
		_, err := inVolume(volume, sub)
		assert.Error(t, err, sub)
	}
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Empty(t, entries, "no file was created outside")
}

func TestVolumeMounts(t *testing.T) {
	dir := t.TempDir()
	s := &podSync{
		r: new(Runtime), volumes: map[string]runtime.Volume{"data": {Path: dir, SELinuxRelabel: true}, "secret": {Path: dir, ReadOnly: true}, "disk": {Device: dir}, "gone": {Device: dir + "/gone"}},
		pod: &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{
			{Name: "data"}, {Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}},
		}}},
	}
	env, err := podenv.New(podenv.Inputs{Pod: s.pod}, &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "x"}}})
	require.NoError(t, err)
	volume := func(m v1.VolumeMount) (podconfig.Volume, error) {
		return s.volume(t.Context(), &v1.Container{Name: "c", VolumeMounts: []v1.VolumeMount{m}}, 0, env)
	}
	v, err := volume(v1.VolumeMount{Name: "data", MountPath: "/d", SubPathExpr: "$(A)/y"})
	require.NoError(t, err)
	assert.Equal(t, "y", filepath.Base(v.HostPath))
	assert.True(t, v.Relabel)
	v, err = volume(v1.VolumeMount{Name: "secret", MountPath: "/s"})
	require.NoError(t, err)
	assert.Equal(t, podconfig.Volume{HostPath: dir, ReadOnly: true}, v)
	for _, bad := range []v1.VolumeMount{
		{Name: "none", MountPath: "/n"},
		{Name: "disk", MountPath: "/n"},
		{Name: "data", SubPathExpr: "$(B)/y"}, // vol-71
		{Name: "data", SubPathExpr: "$(A)/../.."},
		{Name: "image", SubPathExpr: "$(A)/../.."},
	} {
		_, err := volume(bad)
		assert.Error(t, err, "%v", bad)
	}
	s.imageVolumes = map[string]images.Result{"image": {Image: images.Image{Spec: &runtimeapi.ImageSpec{Image: "sha256:1"}}}}
	v, err = volume(v1.VolumeMount{Name: "image", SubPath: "bin"})
	require.NoError(t, err)
	assert.Equal(t, podconfig.Volume{Image: s.imageVolumes["image"].Image.Spec, ImageSubPath: "bin"}, v)
	_, err = volume(v1.VolumeMount{Name: "image", SubPath: "../bin"})
	assert.Error(t, err)

	_, err = s.volumesOf(t.Context(), &v1.Container{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "data", SubPath: "../x"}}}, env)
	assert.EqualError(t, err, `failed to prepare subPath for volumeMount "data" of container "c": "../x" is outside of the volume`) // vol-69

	unsupported := volumesFunc(func(runtime.SubPath) (string, error) { return "", fmt.Errorf("no mounts: %w", errors.ErrUnsupported) })
	s.r.cfg.Providers.Volumes = unsupported
	resolved, err := volume(v1.VolumeMount{Name: "data", SubPath: "sub"})
	s.r.cfg.Providers.Volumes = nil
	once, onceErr := volume(v1.VolumeMount{Name: "data", SubPath: "sub"})
	assert.Equal(t, once, resolved)
	assert.Equal(t, onceErr, err)
	s.r.cfg.Providers.Volumes = volumesFunc(func(sub runtime.SubPath) (string, error) { // vol-70
		assert.Equal(t, runtime.SubPath{
			PodUID: s.pod.UID, Container: "c", Volume: "secret", VolumePath: s.volumes["secret"].Path, Path: "x/y", ReadOnly: true,
		}, sub)
		return "/bound", nil
	})
	v, err = volume(v1.VolumeMount{Name: "secret", SubPathExpr: "$(A)/y"})
	require.NoError(t, err)
	assert.Equal(t, podconfig.Volume{HostPath: "/bound", ReadOnly: true}, v)

	// Devices (vol-74): a missing one is omitted.
	devices, err := s.devicesOf(&v1.Container{VolumeDevices: []v1.VolumeDevice{{Name: "disk"}, {Name: "gone"}}})
	require.NoError(t, err)
	assert.Equal(t, []podconfig.BlockDevice{{HostPath: dir}, {}}, devices)
	_, err = s.devicesOf(&v1.Container{VolumeDevices: []v1.VolumeDevice{{Name: "data"}}})
	assert.Error(t, err)
}

// volumesFunc implements Volumes with a function for sub-paths.
type volumesFunc func(runtime.SubPath) (string, error)

func (volumesFunc) Groups(*v1.Pod) []int64 { return nil }

func (f volumesFunc) SubPath(_ context.Context, sub runtime.SubPath) (string, error) { return f(sub) }
