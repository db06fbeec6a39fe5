//go:build linux || darwin

package dirlock_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/dirlock"
)

func TestOneHoldsALockUntilItIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := dirlock.Take(path)
	require.NoError(t, err)
	_, err = dirlock.Take(path)
	require.ErrorIs(t, err, dirlock.ErrHeld)
	assert.ErrorContains(t, err, "(process "+strconv.Itoa(os.Getpid())+")")
	require.NoError(t, first.Release())
	second, err := dirlock.Take(path)
	require.NoError(t, err)
	require.NoError(t, second.Release())
	_, err = dirlock.Take(filepath.Join(path, "below"))
	require.Error(t, err)
	assert.NotErrorIs(t, err, dirlock.ErrHeld)
}
