package kubelet

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

// A node of a control plane starts before the API server, which is one of its pods.
func TestRetriesAreQuietUntilTheAPIServerAnswers(t *testing.T) {
	var ready atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "starting", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"major":"1","minor":"37"}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`), 0o600))
	cfg := standalone(t, "")
	cfg.Cluster = Cluster{Kubeconfig: file}
	b := newBase(t, cfg)
	var out bytes.Buffer
	b.Logger = slog.New(slog.NewTextHandler(&out, nil))
	conn, err := stores.NewConnection(t.Context(), b)
	require.NoError(t, err)
	lines := func() int {
		out.Reset()
		for range 3 {
			conn.Base(b).Logger.Warn("Failed to register node; will retry")
			_, _ = conn.API.Discovery().ServerVersion()
		}
		return strings.Count(out.String(), "Failed to register")
	}
	assert.Equal(t, 1, lines())
	assert.Zero(t, lines())
	ready.Store(true)
	_ = lines()
	assert.Equal(t, 3, lines(), "once it has answered, each failure is reported")
	require.NoError(t, conn.Close())

	cfg.Cluster.Client = new(client.Connection)
	conn, err = stores.NewConnection(t.Context(), newBase(t, cfg))
	require.NoError(t, err)
	assert.NotNil(t, conn.Base(b).Logger)
}
