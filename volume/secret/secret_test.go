package secret_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func spec(source v1.SecretVolumeSource) *volume.Spec {
	return &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{Secret: &source}}}
}

// vol-52
func TestSecretsAreInMemory(t *testing.T) {
	mounter := new(volumetest.Mounter)
	objects := volumetest.NewObjects(volumetest.Secret("default", "tls", map[string]string{"key": "k"}))
	p := plugin(t, objects, mounter)
	mode := int32(0o400)
	req := volumetest.Request(t, p, spec(v1.SecretVolumeSource{SecretName: "tls", DefaultMode: &mode}))
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	points, err := mounter.List()
	require.NoError(t, err)
	require.Len(t, points, 1)
	assert.Equal(t, "tmpfs", points[0].Type)
	data, err := os.ReadFile(filepath.Join(mounted.Path, "key"))
	require.NoError(t, err)
	assert.Equal(t, "k", string(data))
	assert.True(t, mounted.ReadOnly)
	assert.Equal(t, []v1.ObjectReference{{Kind: "Secret", Namespace: "default", Name: "tls"}}, p.ObjectRefs(req.Pod, req.Spec))
	require.NoError(t, p.TearDown(t.Context(), req.Place))
	assert.Empty(t, mounter.Below(req.RootDir))
}

func TestInvalidSourcesFailBeforeAnyChange(t *testing.T) {
	mounter := new(volumetest.Mounter)
	p := plugin(t, volumetest.NewObjects(volumetest.Secret("default", "tls", map[string]string{"key": "k"})), mounter)
	for want, source := range map[string]v1.SecretVolumeSource{
		`secret "gone" not found`:                              {SecretName: "gone"},
		"references non-existent secret key: x":                {SecretName: "tls", Items: []v1.KeyToPath{{Key: "x", Path: "x"}}},
		"invalid path: must not contain '..': a/../../../../b": {SecretName: "tls", Items: []v1.KeyToPath{{Key: "key", Path: "a/../../../../b"}}},
		"secret has no name":                                   {},
	} {
		req := volumetest.Request(t, p, spec(source))
		_, err := p.SetUp(t.Context(), req)
		require.EqualError(t, err, want)
		assert.NoDirExists(t, req.PodDir())
	}
	assert.Empty(t, mounter.Below(t.TempDir()))
	_, err := secret.New(secret.Config{})
	require.EqualError(t, err, "secret: Config.Tmpfs or its Mounter is nil")
}

func TestOptionalMeansEmpty(t *testing.T) {
	p := plugin(t, volumetest.NewObjects(volumetest.Secret("default", "tls", map[string]string{"key": "k"})), new(volumetest.Mounter))
	for name, source := range map[string]v1.SecretVolumeSource{
		"secret": {SecretName: "gone", Optional: new(true)},
		"key":    {SecretName: "tls", Items: []v1.KeyToPath{{Key: "x", Path: "x"}}, Optional: new(true)},
	} {
		mounted, err := p.SetUp(t.Context(), volumetest.Request(t, p, spec(source)))
		require.NoError(t, err, name)
		assert.NoFileExists(t, filepath.Join(mounted.Path, "x"), name)
	}
}

// An API server rejects a Secret of 2 MiB; one from another source is written.
func TestALargeSecretIsWrittenWhole(t *testing.T) {
	big := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "big"}, Data: map[string][]byte{"k": bytes.Repeat([]byte("x"), 2<<20)}}
	p := plugin(t, volumetest.NewObjects(big), new(volumetest.Mounter))
	mounted, err := p.SetUp(t.Context(), volumetest.Request(t, p, spec(v1.SecretVolumeSource{SecretName: "big"})))
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(mounted.Path, "k"))
	require.NoError(t, err)
	assert.EqualValues(t, 2<<20, info.Size())
}
