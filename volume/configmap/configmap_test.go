package configmap_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func spec(name string, optional bool, items ...v1.KeyToPath) *volume.Spec {
	return &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
		LocalObjectReference: v1.LocalObjectReference{Name: name}, Items: items, Optional: &optional,
	}}}}
}

func TestVolumeContent(t *testing.T) {
	objects := volumetest.NewObjects(volumetest.ConfigMap("default", "web", map[string]string{"a": "1", "b": "2"}))
	p := plugin(t, objects, new(volumetest.Mounter))
	req := volumetest.Request(t, p, spec("web", false))
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(req.RootDir, "pods", "u1", "volumes", "kubernetes.io~configmap", "files"), mounted.Path)
	assert.True(t, mounted.ReadOnly)
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(mounted.Path, name))
		require.NoError(t, err)
		return string(data)
	}
	assert.Equal(t, "1", read("a"))
	assert.Equal(t, []v1.ObjectReference{{Kind: "ConfigMap", Namespace: "default", Name: "web"}}, p.ObjectRefs(req.Pod, req.Spec))
	assert.True(t, p.Refreshes(req.Spec), "vol-11")

	objects.Put(volumetest.ConfigMap("default", "web", map[string]string{"a": "new"}))
	req.Refresh = true
	_, err = p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, "new", read("a"))
	assert.NoFileExists(t, filepath.Join(mounted.Path, "b"))

	objects.Fail(errors.New("the API server is away"))
	_, err = p.SetUp(t.Context(), req)
	require.EqualError(t, err, "the API server is away")
	assert.Equal(t, "new", read("a"), "the existing content stays")
	stats, err := p.Stats(t.Context(), req.Place, mounted.Volume)
	if !errors.Is(err, errors.ErrUnsupported) {
		require.NoError(t, err)
		assert.NotNil(t, stats.UsedBytes)
	}
}

func TestInvalidSourcesFailBeforeAnyChange(t *testing.T) {
	objects := volumetest.NewObjects(volumetest.ConfigMap("default", "web", map[string]string{"a": "1"}))
	long := strings.Repeat("n", 300)
	for _, c := range []struct {
		name string
		spec *volume.Spec
		err  string
	}{
		{"vol-43 missing", spec("gone", false), `configmap "gone" not found`},
		{"vol-51 missing key", spec("web", false, v1.KeyToPath{Key: "x", Path: "x"}), "configmap references non-existent config key: x"},
		{"vol-39 up", spec("web", false, v1.KeyToPath{Key: "a", Path: "../../etc/passwd"}), "invalid path: must not contain '..': ../../etc/passwd"},
		{"vol-39 absolute", spec("web", false, v1.KeyToPath{Key: "a", Path: "/etc/passwd"}), "invalid path: must be relative path: /etc/passwd"},
		{"vol-39 our own names", spec("web", false, v1.KeyToPath{Key: "a", Path: "..data/x"}), "invalid path: must not start with '..': ..data/x"},
		{"vol-39 300 characters", spec("web", false, v1.KeyToPath{Key: "a", Path: long}), "invalid path: filenames must be less than or equal to 255 characters"},
		{"zero byte", spec("web", false, v1.KeyToPath{Key: "a", Path: "a\x00"}), `invalid path: must not contain a zero byte: "a\x00"`},
		{"colliding paths", spec("web", false, v1.KeyToPath{Key: "a", Path: "p"}, v1.KeyToPath{Key: "a", Path: "p/q"}), `invalid path: "p" is a file and cannot contain "p/q"`},
		{"no name", spec("", true), "configMap has no name"},
		{"no name of an object", spec("../web", false), `configMap "../web": is no name of an object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plugin(t, objects, new(volumetest.Mounter))
			req := volumetest.Request(t, p, c.spec)
			_, err := p.SetUp(t.Context(), req)
			require.EqualError(t, err, c.err)
			assert.NoDirExists(t, req.PodDir(), "nothing was written")
		})
	}
	p := plugin(t, nil, new(volumetest.Mounter))
	_, err := p.SetUp(t.Context(), volumetest.Request(t, p, spec("web", true)))
	require.EqualError(t, err, "couldn't get configMap default/web, no kubeClient defined")
}

// vol-43
func TestOptionalMeansEmpty(t *testing.T) {
	objects := volumetest.NewObjects()
	p := plugin(t, objects, new(volumetest.Mounter))
	req := volumetest.Request(t, p, spec("later", true))
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(mounted.Path, "a"))

	objects.Put(volumetest.ConfigMap("default", "later", map[string]string{"a": "1"}))
	req.Refresh = true
	_, err = p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(mounted.Path, "a"))

	objects.Fail(errors.New("the API server is away"))
	_, err = p.SetUp(t.Context(), volumetest.Request(t, p, spec("later", true)))
	require.Error(t, err, "away is not the same as not there")
}
