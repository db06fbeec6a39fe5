//go:build !windows

package atomic_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// owner returns the owner that stat, os.Stat or os.Lstat, reports.
func owner(t *testing.T, stat func(string) (os.FileInfo, error), path string) int {
	t.Helper()
	info, err := stat(path)
	require.NoError(t, err)
	return int(info.Sys().(*syscall.Stat_t).Uid)
}
