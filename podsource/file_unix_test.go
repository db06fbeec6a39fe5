//go:build unix

// Pipes, permissions and loops as Unix has them.

package podsource_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPipeIsRefusedUnopened(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")))
	write(t, filepath.Join(dir, "web.yaml"), webYAML)
	f := newFile(t, dir)
	assert.Equal(t, []string{"web"}, read(t, f))
	require.Len(t, f.Problems(), 2)
	assert.EqualError(t, f.Problems()[0].Err, "podsource: "+pipe+": is a named pipe, not a regular file")
	assert.ErrorContains(t, f.Problems()[1].Err, "zero.yaml: is a device, not a regular file")
}

func TestWhatCannotBeReadStaysInForce(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root reads everything: only the loop is tested")
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "manifests")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "web.yaml")
	write(t, path, webYAML)
	f := newFile(t, dir)
	assert.Equal(t, []string{"web"}, read(t, f))

	if os.Getuid() != 0 {
		require.NoError(t, os.Chmod(path, 0))
		assert.Equal(t, []string{"web"}, read(t, f))
		require.Len(t, f.Problems(), 1)
		assert.ErrorContains(t, f.Problems()[0].Err, path+": permission denied")
		require.NoError(t, os.Chmod(path, 0o600))
		read(t, f)
		assert.Empty(t, f.Problems())
	}

	require.NoError(t, os.Rename(dir, dir+".away"))
	require.NoError(t, os.Symlink("manifests", dir))
	_, err := f.Read()
	require.ErrorContains(t, err, "podsource: "+dir+": too many levels of symbolic links", "no set rather than an empty one")
	require.Len(t, f.Problems(), 1)
	assert.Equal(t, dir, f.Problems()[0].Path)
	assert.NotZero(t, f.Problems()[0].LastGood)

	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	assert.Equal(t, []string{"web"}, read(t, f))
	assert.Empty(t, f.Problems())
}
