package kubelet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestSetOOMScore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oom_score_adj")
	require.NoError(t, stores.SetOOMScore(file, -999), "the kernel has none")
	require.NoFileExists(t, file)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, stores.SetOOMScore(file, -999))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "-999", string(text))
	require.Error(t, stores.SetOOMScore(t.TempDir(), 0))
}
