package untrusted_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

func TestRemoveTreeFollowsNoLink(t *testing.T) {
	outside, dir := write(t, "outside", "x"), filepath.Join(t.TempDir(), "tree")
	require.NoError(t, untrusted.RemoveTree(t.Context(), dir), "a tree that does not exist")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b", "c"), nil, 0o400))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "a", "link")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "closed"), 0o000))
	mkfifo(t, filepath.Join(dir, "pipe"))
	require.NoError(t, untrusted.RemoveTree(t.Context(), dir))
	assert.NoDirExists(t, dir)
	assert.FileExists(t, outside)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Dir(outside), link))
	require.NoError(t, untrusted.RemoveTree(t.Context(), link))
	assert.NoFileExists(t, link)
	assert.FileExists(t, outside)
}

func TestRemoveTreeReadsDirectoriesInPieces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for i := range 2500 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
	}
	require.NoError(t, untrusted.RemoveTree(t.Context(), dir))
	assert.NoDirExists(t, dir)
}

func TestRemoveTreeThatIsCanceled(t *testing.T) {
	path := write(t, "f", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, untrusted.RemoveTree(ctx, filepath.Dir(path)), context.Canceled)
	assert.FileExists(t, path)
}
