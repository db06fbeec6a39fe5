package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
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
		_, err := stores.NewConnection(t.Context(), newBase(t, cfg))
		assert.ErrorContains(t, err, want)
	}
	cfg.Cluster = Cluster{Kubeconfig: file}
	conn, err := stores.NewConnection(t.Context(), newBase(t, cfg))
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:1", conn.Config.Host)
	assert.NotNil(t, conn.CloseAll)
	assert.Nil(t, conn.Expires, "the certificate of the file is not rotated")
	require.NoError(t, conn.Close())

	cfg.Cluster.Client = new(client.Connection)
	conn, err = stores.NewConnection(t.Context(), newBase(t, cfg))
	require.NoError(t, err)
	assert.Same(t, cfg.Cluster.Client, conn.Connection, "Cluster.Client precedes Cluster.Kubeconfig")
	assert.NoError(t, conn.Close(), "the connections are the caller's")
}

// With rotateCertificates static pods run before there is a certificate, since one of them may be the API server.
func TestAFirstCertificateIsAwaitedOnlyWithoutRotation(t *testing.T) {
	file := writeKubeconfig(t)
	cfg := standalone(t, "")
	cfg.Cluster = Cluster{Kubeconfig: file + ".none", BootstrapKubeconfig: file, CertDir: t.TempDir()}
	cfg.Configuration.RotateCertificates = true
	conn, err := stores.NewConnection(t.Context(), newBase(t, cfg))
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:1", conn.Config.Host)
	assert.Zero(t, conn.Expires())
	assert.Len(t, conn.Run, 1, "the certificate is requested by a component")
	require.NoError(t, conn.Close())

	cfg.Configuration.RotateCertificates = false
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = stores.NewConnection(ctx, newBase(t, cfg))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// Pods are cached from the second start on: without the labels of its node a kubelet
// would reject pods that select them.
func TestRememberedPods(t *testing.T) {
	file := writeKubeconfig(t)
	cfg := standalone(t, "")
	cfg.Cluster = Cluster{Kubeconfig: file}
	join := func(mounts bool) (*stores.Cluster, error) {
		b := newBase(t, cfg)
		conn, err := stores.NewConnection(t.Context(), b)
		require.NoError(t, err)
		events, err := stores.NewEvents(b, conn)
		require.NoError(t, err)
		return stores.NewCluster(b, stores.ClusterDeps{Conn: conn, Events: events, Object: stores.NewNodeObject(b), Mounts: mounts})
	}
	c, err := join(false)
	require.NoError(t, err)
	assert.Same(t, c.Pods, c.Source, "not cached")
	assert.NoError(t, c.StorageErr())

	cfg.Cluster.CheckpointPods = true
	c, err = join(true)
	require.NoError(t, err)
	assert.IsType(t, new(podsource.Checkpoint), c.Source)
	assert.ErrorIs(t, c.StorageErr(), client.ErrNoCSINode, "the node is not ready before its CSINode exists")

}
