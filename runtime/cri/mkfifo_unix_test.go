//go:build unix

package cri

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mkfifo makes a FIFO without a writer: opening it for reading blocks.
func Mkfifo(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o644))
	return path
}
