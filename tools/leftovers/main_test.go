package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADirectoryWithoutFilesIsNoState(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "containerd", "fifo"), 0o700))
	assert.False(t, hasFiles(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "containerd", "fifo", "0"), nil, 0o600))
	assert.True(t, hasFiles(dir))
	assert.True(t, hasFiles(filepath.Join(dir, "containerd", "fifo", "0")))
	assert.False(t, hasFiles(filepath.Join(dir, "gone")))
}
