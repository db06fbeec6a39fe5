package atomic_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume/atomic"
)

func TestPathsThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct{ name, path, want string }{
		{"vol-39 empty", "", `invalid path: must not be empty: ""`},
		{"vol-39 absolute", "/etc/passwd", "invalid path: must be relative path: /etc/passwd"},
		{"vol-39 up", "a/../../b", "invalid path: must not contain '..': a/../../b"},
		{"vol-39 up at the end", "a/..", "invalid path: must not contain '..': a/.."},
		{"vol-39 long", strings.Repeat("a/", 2049), "invalid path: must be less than or equal to 4096 characters"},
		{"vol-39 long name", "a/" + strings.Repeat("b", 300), "invalid path: filenames must be less than or equal to 255 characters"},
		{"vol-39 our own names", "..data", "invalid path: must not start with '..': ..data"},
		{"our own names behind a dot", "./..data/x", "invalid path: must not start with '..': ./..data/x"},
		{"no file", "./.", `invalid path: must name a file: "./."`},
		{"zero byte", "a\x00b", `invalid path: must not contain a zero byte: "a\x00b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.EqualError(t, atomic.Check(c.path), c.want)
			dir := t.TempDir()
			_, err := atomic.Write(dir, atomic.Payload{"good": {}, c.path: {}}, atomic.Options{})
			require.EqualError(t, err, c.want)
			assert.ErrorIs(t, err, atomic.ErrPath)
			assert.Empty(t, list(t, dir), "nothing is written")
		})
	}
	for _, good := range []string{"a", "a/b", "...", "a/..b", ".hidden", "a b", strings.Repeat("b", 255), "a//b", "dir/"} {
		if good == "..." {
			assert.Error(t, atomic.Check(good), "vol-39: it begins with ..")
			continue
		}
		assert.NoError(t, atomic.Check(good), good)
	}
}

func TestPathsThatExcludeEachOtherAreRefused(t *testing.T) {
	for _, c := range []struct {
		payload atomic.Payload
		want    string
	}{
		{atomic.Payload{"a": {}, "./a": {}}, `invalid path: "./a" and "a" are the same file`},
		{atomic.Payload{"a": {}, "a/b/c": {}}, `invalid path: "a" is a file and cannot contain "a/b/c"`},
	} {
		dir := t.TempDir()
		_, err := atomic.Write(dir, c.payload, atomic.Options{})
		require.EqualError(t, err, c.want)
		assert.Empty(t, list(t, dir))
	}
}

// Any path is either rejected, or the file can be read there, and nothing is outside.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "../a", "/a", "..data", "a/../b", "./a", "a\x00", "..2020_01_01_00_00_00.1/x", "a\\..\\b", strings.Repeat("x", 256), "."} {
		f.Add(seed, "other")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "volume")
		require.NoError(t, os.Mkdir(dir, 0o755))
		payload := atomic.Payload{a: {Data: []byte("A"), Mode: 0o644}}
		payload[b] = atomic.File{Data: []byte("B"), Mode: 0o600}
		_, err := atomic.Write(dir, payload, atomic.Options{})
		assert.Equal(t, []string{"volume"}, list(t, parent), "nothing outside the volume")
		if payload.Check() != nil {
			require.Error(t, err)
			require.Empty(t, list(t, dir))
			return
		}
		if err != nil {
			return // a limit of the file system
		}
		for p, file := range payload {
			got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p)))
			require.NoError(t, err)
			require.Equal(t, file.Data, got)
		}
	})
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// tree returns the content that a reader sees, by path, through the visible names.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, name := range list(t, dir) {
		if strings.HasPrefix(name, "..") {
			continue
		}
		top := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(top)
		require.NoError(t, err, "a name that leads nowhere")
		require.NoError(t, filepath.WalkDir(real, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(p)
			rel, _ := filepath.Rel(real, p)
			seen[filepath.ToSlash(filepath.Join(name, rel))] = string(data)
			return err
		}))
	}
	return seen
}
