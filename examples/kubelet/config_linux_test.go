package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// A configuration is a regular file of a limited size.
func TestAConfigurationIsReadWithABound(t *testing.T) {
	dir := t.TempDir()
	fifo, huge := filepath.Join(dir, "fifo"), filepath.Join(dir, "huge")
	require.NoError(t, syscall.Mkfifo(fifo, 0o666))
	require.NoError(t, os.WriteFile(huge, nil, 0o644))
	require.NoError(t, os.Truncate(huge, 8<<40))
	for path, want := range map[string]error{
		fifo: untrusted.ErrNotRegular, "/dev/zero": untrusted.ErrNotRegular, dir: untrusted.ErrNotRegular, huge: untrusted.ErrTooLarge,
	} {
		_, _, err := readConfig(path, "")
		assert.ErrorIs(t, err, want, path)
	}
}
