//go:build !windows

package projected_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/token"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// The files of each kind of volume belong to the user that the source sets, else to
// that of the volume, else, if they are credentials, to the common user of all
// containers.
func TestFilesBelongToTheUserThatIsSet(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	mounter := new(volumetest.Mounter)
	memory := &emptydir.Tmpfs{Mounter: mounter}
	objects := volumetest.NewObjects(
		volumetest.ConfigMap("default", "c", map[string]string{"a": "1", "b": "2"}), volumetest.Secret("default", "s", map[string]string{"a": "1", "b": "2"}))
	tokens, err := token.New(token.Config{Get: new(apiServer).Token})
	require.NoError(t, err)
	maps, err := configmap.New(configmap.Config{Objects: objects, Mounter: mounter})
	require.NoError(t, err)
	secrets, err := secret.New(secret.Config{Objects: objects, Tmpfs: memory})
	require.NoError(t, err)
	own, err := downward.New(downward.Config{Tmpfs: memory})
	require.NoError(t, err)
	all, err := projected.New(projected.Config{Objects: objects, Tokens: tokens, TrustBundles: bundles{}, Tmpfs: memory})
	require.NoError(t, err)

	items := []v1.KeyToPath{{Key: "a", Path: "a", User: ptr[int64](1001)}, {Key: "b", Path: "b"}}
	fields := []v1.DownwardAPIVolumeFile{
		{Path: "a", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}, User: ptr[int64](1001)},
		{Path: "b", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}},
	}
	cmSource := v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "c"}, Items: items}}
	tokenSource := func(path string, user *int64) v1.VolumeProjection {
		return v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: path, User: user}}
	}
	bundle := func(user *int64) v1.VolumeProjection {
		return v1.VolumeProjection{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Path: "ca", SignerName: ptr("x"), Optional: ptr(true), User: user}}
	}
	for _, c := range []struct {
		name   string
		plugin volume.Plugin
		source v1.VolumeSource
		fsUser *int64
		want   map[string]int
	}{
		{"configMap", maps, v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
			LocalObjectReference: v1.LocalObjectReference{Name: "c"}, Items: items, DefaultUser: ptr[int64](1000)}}, nil, map[string]int{"a": 1001, "b": 1000}},
		{"configMap, all keys", maps, v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
			LocalObjectReference: v1.LocalObjectReference{Name: "c"}, DefaultUser: ptr[int64](1000)}}, nil, map[string]int{"a": 1000, "b": 1000}},
		{"secret", secrets, v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", Items: items, DefaultUser: ptr[int64](1000)}}, nil, map[string]int{"a": 1001, "b": 1000}},
		{"secret, no default", secrets, v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", Items: items}}, ptr[int64](7), map[string]int{"a": 1001, "b": 0}},
		{"downwardAPI", own, v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: fields, DefaultUser: ptr[int64](1000)}}, nil, map[string]int{"a": 1001, "b": 1000}},
		{"projected", all, v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			DefaultUser: ptr[int64](1000),
			Sources:     []v1.VolumeProjection{cmSource, tokenSource("t", ptr[int64](1002)), tokenSource("u", nil), bundle(ptr[int64](1003))},
		}}, ptr[int64](7), map[string]int{"a": 1001, "b": 1000, "t": 1002, "u": 1000, "ca": 1003}},
		{"projected, no default", all, v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			Sources: []v1.VolumeProjection{tokenSource("t", ptr[int64](0)), tokenSource("u", nil), bundle(nil)},
		}}, ptr[int64](7), map[string]int{"t": 0, "u": 7, "ca": 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := volumetest.Request(t, c.plugin, &volume.Spec{Volume: &v1.Volume{Name: "v", VolumeSource: c.source}})
			req.FSUser = c.fsUser
			mounted, err := c.plugin.SetUp(t.Context(), req)
			require.NoError(t, err)
			got := map[string]int{}
			for path := range c.want {
				info, err := os.Stat(filepath.Join(mounted.Path, path))
				require.NoError(t, err)
				got[path] = int(info.Sys().(*syscall.Stat_t).Uid)
			}
			assert.Equal(t, c.want, got)
		})
	}
	for _, user := range []int64{-1, 1 << 31} {
		req := volumetest.Request(t, secrets, &volume.Spec{Volume: &v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", DefaultUser: &user}}}})
		_, err := secrets.SetUp(t.Context(), req)
		require.ErrorContains(t, err, "is out of range")
		assert.NoDirExists(t, req.PodDir())
	}
}
