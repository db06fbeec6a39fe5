package kubelet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/podsource"
)

// writeKubeconfig returns the path of a kubeconfig file of an unreachable server.
func writeKubeconfig(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`), 0o600))
	return file
}

func TestConnection(t *testing.T) {
	file := writeKubeconfig(t)
	cfg := standalone(t, "")
	for want, c := range map[string]Cluster{
		"no such file":         {Kubeconfig: file + ".none"},
		"bootstrap kubeconfig": {Kubeconfig: file + ".none", BootstrapKubeconfig: file + ".none"},
	} {
		cfg.Cluster = c
		_, err := newConnection(t.Context(), newBase(t, cfg))
		assert.ErrorContains(t, err, want)
	}
	cfg.Cluster = Cluster{Kubeconfig: file}
	conn, err := newConnection(t.Context(), newBase(t, cfg))
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:1", conn.Config.Host)
	assert.NotNil(t, conn.closeAll)
	assert.Nil(t, conn.expires, "the certificate of the file is not rotated")
	require.NoError(t, conn.close())

	cfg.Cluster.Client = new(client.Connection)
	conn, err = newConnection(t.Context(), newBase(t, cfg))
	require.NoError(t, err)
	assert.Same(t, cfg.Cluster.Client, conn.Connection, "Cluster.Client precedes Cluster.Kubeconfig")
	assert.NoError(t, conn.close(), "the connections are the caller's")
}

// Pods are cached from the second start on: without the labels of its node a kubelet
// would reject pods that select them.
func TestRememberedPods(t *testing.T) {
	file := writeKubeconfig(t)
	cfg := standalone(t, "")
	cfg.Cluster = Cluster{Kubeconfig: file}
	join := func(mounts bool) (*cluster, error) {
		b := newBase(t, cfg)
		conn, err := newConnection(t.Context(), b)
		require.NoError(t, err)
		events, err := newEvents(b, conn)
		require.NoError(t, err)
		return newCluster(b, clusterDeps{conn, events, newNodeObject(b), mounts})
	}
	c, err := join(false)
	require.NoError(t, err)
	assert.Same(t, c.pods, c.source, "not cached")
	assert.NoError(t, c.storageErr())

	cfg.Cluster.CheckpointPods = true
	c, err = join(true)
	require.NoError(t, err)
	assert.IsType(t, new(podsource.Checkpoint), c.source)
	assert.ErrorIs(t, c.storageErr(), client.ErrNoCSINode, "the node is not ready before its CSINode exists")

}
