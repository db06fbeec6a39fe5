package podwing

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
)

func TestSources(t *testing.T) {
	none, err := newSources(wingtest.Base(t, wingtest.Standalone(t, "")), nil)
	require.NoError(t, err)
	assert.Empty(t, none.ByName)
	assert.NoError(t, none.Err())

	b := wingtest.Base(t, wingtest.Standalone(t, "staticPodPath: /none\nstaticPodURL: http://user:secret@b/\nstaticPodURLHeader: {X-Key: [one, two]}\nhttpCheckFrequency: 5s\n"))
	both, err := newSources(b, nil)
	require.NoError(t, err)
	assert.Len(t, both.ByName, 2)
	assert.Contains(t, both.ByName, podsource.FileSource)
	assert.Contains(t, both.ByName, podsource.HTTPSource)
	assert.Equal(t, []string{podsource.FileSource, podsource.HTTPSource}, both.Static)
	info, err := os.Stat(filepath.Join(b.Config.RootDir, "sources"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm(), "checkpoints contain the manifests' content")

	_, err = newSources(wingtest.Base(t, wingtest.Standalone(t, "staticPodURL: b\n")), nil)
	assert.ErrorContains(t, err, "staticPodURL: ")

	joined := &stores.Cluster{Source: new(podsource.Memory)}
	withCluster, err := newSources(wingtest.Base(t, wingtest.Standalone(t, "")), joined)
	require.NoError(t, err)
	assert.Equal(t, map[string]podsource.PodSource{podsource.APISource: joined.Source}, withCluster.ByName)
}

// The pod of an older kubelet keeps its UID: the node has its directory.
func TestStaticPodsOfAnOlderKubeletKeepTheirUIDs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i:1}]}\n"), 0o600))
	b := wingtest.Base(t, wingtest.Standalone(t, "staticPodPath: "+dir+"\n"))
	uid := func() types.UID {
		s, err := newSources(b, nil)
		require.NoError(t, err)
		files, ok := s.ByName[podsource.FileSource].(*podsource.File)
		require.True(t, ok)
		var pods []*v1.Pod
		require.Eventually(t, func() bool {
			pods, err = files.Read()
			return err == nil
		}, 90*time.Second, 10*time.Millisecond)
		require.Len(t, pods, 1)
		return pods[0].UID
	}
	newest := uid()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var asked []types.UID
	_, err = manifest.Static(text, b.Config.NodeName, "file:"+path, manifest.StaticOptions{Exists: func(uid types.UID) bool {
		asked = append(asked, uid)
		return false
	}})
	require.NoError(t, err)
	require.Greater(t, len(asked), 1)
	assert.Equal(t, newest, asked[0])
	require.NoError(t, os.MkdirAll(filepath.Join(b.Config.RootDir, "pods", string(asked[1])), 0o750))
	assert.Equal(t, asked[1], uid())
}
