package untrusted_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// write makes a file and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// sparse makes a file that has no blocks.
func sparse(t *testing.T, size int64) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("truncating allocates the space there")
	}
	path := write(t, "sparse", "")
	require.NoError(t, os.Truncate(path, size))
	return path
}

// allocated returns how many bytes f allocates, of which some may be freed.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestReadFileIsBounded(t *testing.T) {
	path := write(t, "f", "12345")
	for limit, want := range map[int64]error{0: untrusted.ErrTooLarge, 4: untrusted.ErrTooLarge, 5: nil, 6: nil, 1 << 40: nil} {
		data, err := untrusted.ReadFile(path, limit)
		require.ErrorIs(t, err, want, limit)
		if want == nil {
			assert.Equal(t, "12345", string(data), limit)
		} else {
			assert.Nil(t, data, limit)
			assert.ErrorContains(t, err, path)
		}
	}
	_, err := untrusted.ReadFile(path+"-none", 1)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAHugeFileCostsNothing(t *testing.T) {
	path := sparse(t, 8<<40)
	got := allocated(func() {
		_, err := untrusted.ReadFile(path, 1<<30)
		assert.ErrorIs(t, err, untrusted.ErrTooLarge)
		same, err := untrusted.Equal(path, []byte("short"))
		assert.NoError(t, err)
		assert.False(t, same)
		f, err := untrusted.Open(path)
		require.NoError(t, err)
		tail, err := untrusted.Tail(f, 4096)
		assert.NoError(t, err)
		assert.Len(t, tail, 4096)
		assert.NoError(t, f.Close())
	})
	assert.Less(t, got, uint64(1<<20))
}

func TestAFileThatReportsNoSizeIsBoundedToo(t *testing.T) {
	const proc = "/proc/self/status" // of size 0
	if _, err := os.Stat(proc); err != nil {
		t.Skip("there is no /proc")
	}
	_, err := untrusted.ReadFile(proc, 16)
	assert.ErrorIs(t, err, untrusted.ErrTooLarge)
	data, err := untrusted.ReadFile(proc, 1<<20)
	require.NoError(t, err)
	assert.Contains(t, string(data), "Name:")
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	file, at := write(t, "target", "secret"), func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(at("directory"), 0o755))
	require.NoError(t, os.Symlink(file, at("symbolic link")))
	mkfifo(t, at("named pipe"))
	socket, err := net.Listen("unix", at("socket"))
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, os.Symlink(at("named pipe"), at("link to a pipe")))
	for _, kind := range []string{"directory", "symbolic link", "named pipe", "socket"} {
		_, err := untrusted.Open(at(kind))
		assert.ErrorIs(t, err, untrusted.ErrNotRegular, kind)
		assert.ErrorContains(t, err, kind)
		_, err = untrusted.OpenFile(at(kind), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		assert.ErrorIs(t, err, untrusted.ErrNotRegular, kind)
		_, err = untrusted.ReadFile(at(kind), 100)
		assert.ErrorIs(t, err, untrusted.ErrNotRegular, kind)
		_, err = untrusted.Equal(at(kind), []byte("secret"))
		assert.ErrorIs(t, err, untrusted.ErrNotRegular, kind)
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "secret", string(data), "not truncated through the link")

	f, err := untrusted.OpenFollow(at("symbolic link"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, name := range []string{"named pipe", "link to a pipe", "directory"} {
		_, err = untrusted.OpenFollow(at(name))
		assert.ErrorIs(t, err, untrusted.ErrNotRegular, name)
	}
	data, err = untrusted.ReadFollow(at("symbolic link"), 6)
	require.NoError(t, err)
	assert.Equal(t, "secret", string(data))
	_, err = untrusted.ReadFollow(at("symbolic link"), 5)
	assert.ErrorIs(t, err, untrusted.ErrTooLarge)
	_, err = untrusted.OpenFollow(at("none"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestOpenFileCreatesAndWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"long content", "short"} {
		f, err := untrusted.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(content)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		same, err := untrusted.Equal(path, []byte(content))
		require.NoError(t, err)
		assert.True(t, same)
	}
}

func TestOpenInStaysBelowItsRoot(t *testing.T) {
	dir, outside := t.TempDir(), write(t, "outside", "secret")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o644))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "inside")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "escape")))
	mkfifo(t, filepath.Join(dir, "pipe"))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for _, name := range []string{"file", "inside"} {
		f, err := untrusted.OpenIn(root, name)
		require.NoError(t, err, name)
		data, err := untrusted.Read(f, 7)
		require.NoError(t, err)
		assert.Equal(t, "content", string(data))
		require.NoError(t, f.Close())
	}
	_, err = untrusted.OpenIn(root, "escape")
	assert.Error(t, err)
	_, err = untrusted.OpenIn(root, "pipe")
	assert.ErrorIs(t, err, untrusted.ErrNotRegular)
	_, err = untrusted.OpenIn(root, "none")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReadCountsFromTheOffset(t *testing.T) {
	f, err := os.Open(write(t, "f", "12345"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Seek(3, 0)
	require.NoError(t, err)
	data, err := untrusted.Read(f, 2)
	require.NoError(t, err)
	assert.Equal(t, "45", string(data))
}

func TestTail(t *testing.T) {
	for content, want := range map[string]string{"": "", "123": "123", "1234": "1234", "12345": "2345"} {
		f, err := untrusted.Open(write(t, "f", content))
		require.NoError(t, err)
		tail, err := untrusted.Tail(f, 4)
		require.NoError(t, err)
		assert.Equal(t, want, string(tail))
		require.NoError(t, f.Close())
	}
}

func TestEqual(t *testing.T) {
	path := write(t, "f", "content")
	for content, want := range map[string]bool{"content": true, "content!": false, "conten": false, "CONTENT": false, "": false} {
		same, err := untrusted.Equal(path, []byte(content))
		require.NoError(t, err)
		assert.Equal(t, want, same, content)
	}
	_, err := untrusted.Equal(path+"-none", nil)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func FuzzEqual(f *testing.F) {
	f.Add([]byte("a"), []byte("a"))
	f.Add([]byte(""), []byte("a"))
	f.Fuzz(func(t *testing.T, is, want []byte) {
		path := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(path, is, 0o600))
		same, err := untrusted.Equal(path, want)
		require.NoError(t, err)
		assert.Equal(t, string(is) == string(want), same)
	})
}

func TestReadDirIsBounded(t *testing.T) {
	dir := t.TempDir()
	for name := range strings.FieldsSeq("c a b") {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	for limit, want := range map[int]int{0: 0, 2: 2, 3: 3, 4: 3} {
		entries, err := untrusted.ReadDir(dir, limit)
		assert.Len(t, entries, want)
		if limit < 3 {
			assert.ErrorIs(t, err, untrusted.ErrTooLarge, limit)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "c"}, []string{entries[0].Name(), entries[1].Name(), entries[2].Name()})
	}
	empty, err := untrusted.ReadDir(t.TempDir(), 10)
	require.NoError(t, err)
	assert.Empty(t, empty)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, path := range []string{link, filepath.Join(dir, "a")} {
		_, err := untrusted.ReadDir(path, 10)
		assert.Error(t, err, path)
	}
	_, err = untrusted.ReadDir(filepath.Join(dir, "none"), 10)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
