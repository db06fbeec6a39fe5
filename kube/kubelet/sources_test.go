package kubelet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podsource"
)

func TestSources(t *testing.T) {
	none, err := newSources(newBase(t, standalone(t, "")), nil)
	require.NoError(t, err)
	assert.Empty(t, none.byName)
	assert.NoError(t, none.err())

	b := newBase(t, standalone(t, "staticPodPath: /none\nstaticPodURL: http://user:secret@b/\nstaticPodURLHeader: {X-Key: [one, two]}\nhttpCheckFrequency: 5s\n"))
	both, err := newSources(b, nil)
	require.NoError(t, err)
	assert.Len(t, both.byName, 2)
	assert.Contains(t, both.byName, podsource.FileSource)
	assert.Contains(t, both.byName, podsource.HTTPSource)
	info, err := os.Stat(filepath.Join(b.cfg.RootDir, "sources"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm(), "checkpoints contain the manifests' content")

	_, err = newSources(newBase(t, standalone(t, "staticPodURL: b\n")), nil)
	assert.ErrorContains(t, err, "staticPodURL: ")

	joined := &cluster{source: new(podsource.Memory)}
	withCluster, err := newSources(newBase(t, standalone(t, "")), joined)
	require.NoError(t, err)
	assert.Equal(t, map[string]podsource.PodSource{podsource.APISource: joined.source}, withCluster.byName)
}
