package lab

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIntegrationAControlPlaneServesDiesAndLeavesNothing(t *testing.T) {
	Need(t, "kubernetes")
	var dir string
	t.Run("control plane", func(t *testing.T) {
		begun := time.Now()
		c := NewControlPlane(t, ControlPlaneConfig{})
		t.Logf("ready after %v at %s", time.Since(begun), c.URL)
		dir = c.dir
		get := func(path string) (int, map[string]any) {
			res, err := c.client.Get(c.URL + path)
			require.NoError(t, err)
			defer res.Body.Close()
			var body map[string]any
			require.NoError(t, json.NewDecoder(res.Body).Decode(&body))
			return res.StatusCode, body
		}
		// The controllers work: they make each namespace's service account.
		require.EventuallyWithT(t, func(ct *assert.CollectT) {
			code, _ := get("/api/v1/namespaces/default/serviceaccounts/default")
			require.Equal(ct, http.StatusOK, code)
		}, startPatience, 100*time.Millisecond)
		c.Post("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "kept"}})
		c.RestartAPI()
		code, _ := get("/api/v1/namespaces/kept")
		require.Equal(t, http.StatusOK, code)
		out, err := NewKubectl(t, c.NodeKubeconfig("n1")).Command(t.Context(), "auth", "can-i", "list", "secrets").CombinedOutput()
		assert.Error(t, err)
		assert.Contains(t, string(out), "no")
		out, err = NewKubectl(t, c.BootstrapKubeconfig()).Command(t.Context(), "auth", "can-i", "create", "certificatesigningrequests").CombinedOutput()
		assert.NoError(t, err, "%s", out)
	})
	if dir == "" {
		return
	}
	require.NoDirExists(t, dir)
	left, err := processes(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAControlPlaneIsLookedForWhereEnvtestHasIt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	_, err := kubernetesDir()
	require.ErrorContains(t, err, "kube-apiserver")
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	got, err := kubernetesDir()
	require.NoError(t, err)
	require.Equal(t, dir, got)
	etcd, err := lookEtcd()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "etcd"), etcd)
}

func TestEachProcessHasALoopbackAddressOfItsOwn(t *testing.T) {
	for _, pid := range []int{1, 300, 40000, 4194303} {
		require.True(t, ownLoopback(pid).IsLoopback())
	}
	require.NotEqual(t, ownLoopback(300), ownLoopback(301))
}
