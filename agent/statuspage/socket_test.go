package statuspage

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shortDir is a directory whose name leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestASocketIsForItsUserOnly(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "agent.sock")
	s, err := listenUnix(path)
	require.NoError(t, err)
	assert.Equal(t, path, s.Addr().String())
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSocket|0o600, info.Mode())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing else is left")
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	require.NoError(t, c.Close())

	_, err = listenUnix(path)
	require.ErrorIs(t, err, syscall.EADDRINUSE, "it is in use")
	require.NoError(t, s.Close())
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestTheSocketOfADeadAgentIsReplaced(t *testing.T) {
	path := filepath.Join(shortDir(t), "agent.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	s, err := listenUnix(path)
	require.NoError(t, err)
	defer s.Close()
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	require.NoError(t, c.Close())

	// One that another has replaced stays when the first is closed.
	require.NoError(t, os.Remove(path))
	other, err := listenUnix(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = os.Lstat(path)
	require.NoError(t, err)
	require.NoError(t, other.Close())
}

func TestASocketReplacesNothingButSockets(t *testing.T) {
	dir := shortDir(t)
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	require.NoError(t, os.Symlink(file, link))
	for _, path := range []string{file, link, dir} {
		_, err := listenUnix(path)
		require.ErrorContains(t, err, "the file is not a socket", path)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(text))
	// Nor does it follow a link to a socket.
	real, err := listenUnix(filepath.Join(dir, "real"))
	require.NoError(t, err)
	defer real.Close()
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "real"), link))
	_, err = listenUnix(link)
	require.ErrorContains(t, err, "the file is not a socket")

	_, err = listenUnix(filepath.Join(dir, "missing", "s"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	long := filepath.Join(dir, strings.Repeat("x", 90))
	require.NoError(t, os.Mkdir(long, 0o700))
	_, err = Listen("unix://" + filepath.Join(long, "s"))
	require.ErrorContains(t, err, "has more than 89 bytes")
}
