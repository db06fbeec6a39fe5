package podenv_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/podenv"
)

func TestReadFileDoesNotWaitForAWriter(t *testing.T) { // pe-9
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	_, err := podenv.ReadFile(dir, "pipe")
	assert.ErrorContains(t, err, "not a regular file")
}
