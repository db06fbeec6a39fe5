package atomic_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume/atomic"
)

func needLinks(t testing.TB) {
	if err := os.Symlink("to", filepath.Join(t.TempDir(), "link")); err != nil {
		t.Skipf("this machine doesn't let us make links: %v", err)
	}
}

func write(t *testing.T, dir string, payload atomic.Payload) bool {
	t.Helper()
	changed, err := atomic.Write(dir, payload, atomic.Options{})
	require.NoError(t, err)
	return changed
}

// vol-40
func TestFilesLieBehindOneLink(t *testing.T) {
	needLinks(t)
	dir := t.TempDir()
	require.True(t, write(t, dir, atomic.Payload{"a": {Data: []byte("1"), Mode: 0o640}, "d/e/f": {Data: []byte("2"), Mode: 0o600}}))

	assert.Equal(t, map[string]string{"a": "1", "d/e/f": "2"}, tree(t, dir))
	generation, err := os.Readlink(filepath.Join(dir, "..data"))
	require.NoError(t, err)
	assert.Regexp(t, `^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$`, generation)
	assert.Equal(t, []string{generation, "..data", "a", "d"}, list(t, dir))
	for name, want := range map[string]string{"a": "..data/a", "d": "..data/d"} {
		got, err := os.Readlink(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, filepath.ToSlash(got))
	}
	current, err := atomic.Current(dir)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, generation), current)
	if runtime.GOOS != "windows" {
		assert.Equal(t, fs.FileMode(0o640), mode(t, filepath.Join(dir, "a")))
		assert.Equal(t, fs.FileMode(0o600), mode(t, filepath.Join(dir, "d/e/f")))
		assert.Equal(t, fs.FileMode(0o755), mode(t, filepath.Join(dir, "d/e")))
		assert.Equal(t, fs.FileMode(0o755), mode(t, current))
	}
}

// vol-40
func TestAnUpdateReplacesAllAndRemovesWhatIsOld(t *testing.T) {
	needLinks(t)
	dir := t.TempDir()
	write(t, dir, atomic.Payload{"a": {Data: []byte("1")}, "gone": {}, "d/old": {}})
	before, _ := os.Readlink(filepath.Join(dir, "..data"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "foreign"), nil, 0o600))

	require.True(t, write(t, dir, atomic.Payload{"a": {Data: []byte("2"), Mode: 0o600}, "d/new": {Mode: 0o600}, "e": {Mode: 0o600}}))
	assert.Equal(t, map[string]string{"a": "2", "d/new": "", "e": "", "foreign": ""}, tree(t, dir))
	assert.NoDirExists(t, filepath.Join(dir, before))
	assert.Len(t, list(t, dir), 6, "generation, ..data, a, d, e, foreign")
}

// vol-41
func TestUnchangedFilesAreNotRewritten(t *testing.T) {
	needLinks(t)
	dir := t.TempDir()
	payload := atomic.Payload{"a": {Data: []byte("1"), Mode: 0o640}, "d/e": {Data: []byte("2"), Mode: 0o600}}
	write(t, dir, payload)
	before := list(t, dir)
	require.False(t, write(t, dir, payload))
	require.NoError(t, os.Remove(filepath.Join(dir, "a")))
	require.False(t, write(t, dir, payload), "only a visible link was missing")
	assert.Equal(t, before, list(t, dir))

	for what, change := range map[string]atomic.Payload{
		"content":      {"a": {Data: []byte("X"), Mode: 0o640}, "d/e": {Data: []byte("2"), Mode: 0o600}},
		"a file less":  {"a": {Data: []byte("1"), Mode: 0o640}},
		"a file more":  {"a": {Data: []byte("1"), Mode: 0o640}, "d/e": {Data: []byte("2"), Mode: 0o600}, "d/g": {}},
		"another name": {"a": {Data: []byte("1"), Mode: 0o640}, "d/f": {Data: []byte("2"), Mode: 0o600}},
	} {
		assert.True(t, write(t, dir, change), what)
		assert.True(t, write(t, dir, payload), what)
	}
	if runtime.GOOS != "windows" {
		assert.True(t, write(t, dir, atomic.Payload{"a": {Data: []byte("1"), Mode: 0o644}, "d/e": {Data: []byte("2"), Mode: 0o600}}), "mode")
	}
}

func TestBitsAddedBySetPermsAreIgnored(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	dir := t.TempDir()
	var set []string
	opt := atomic.Options{IgnoreMode: 0o440, SetPerms: func(dir string) error {
		set = append(set, dir)
		_, err := os.Stat(filepath.Join(filepath.Dir(dir), "..data"))
		assert.ErrorIs(t, err, fs.ErrNotExist, "not yet visible to readers")
		return os.Chmod(filepath.Join(dir, "a"), 0o640)
	}}
	for _, want := range []bool{true, false} {
		changed, err := atomic.Write(dir, atomic.Payload{"a": {Mode: 0o600}}, opt)
		require.NoError(t, err)
		assert.Equal(t, want, changed)
	}
	assert.Len(t, set, 1)
}

func TestAFailedWriteKeepsThePreviousContent(t *testing.T) {
	needLinks(t)
	dir := t.TempDir()
	write(t, dir, atomic.Payload{"a": {Data: []byte("1"), Mode: 0o600}})
	before := list(t, dir)
	bad := errors.New("bad permissions")
	_, err := atomic.Write(dir, atomic.Payload{"a": {Data: []byte("2")}}, atomic.Options{SetPerms: func(string) error { return bad }})
	require.ErrorIs(t, err, bad)
	assert.ErrorContains(t, err, dir)
	assert.Equal(t, before, list(t, dir))
	assert.Equal(t, map[string]string{"a": "1"}, tree(t, dir))
}

func TestAMissingDirectoryIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, err := atomic.Write(dir, atomic.Payload{}, atomic.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = atomic.Current(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = atomic.Current(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestForeignLinksAreNotFollowed(t *testing.T) {
	needLinks(t)
	parent := t.TempDir()
	outside, dir := filepath.Join(parent, "outside"), filepath.Join(parent, "volume")
	require.NoError(t, os.MkdirAll(outside, 0o755))
	require.NoError(t, os.Mkdir(dir, 0o755))
	canary := filepath.Join(outside, "canary")
	require.NoError(t, os.WriteFile(canary, []byte("alive"), 0o644))

	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "..data")))
	_, err := atomic.Write(dir, atomic.Payload{"canary": {Data: []byte("dead")}}, atomic.Options{})
	require.ErrorContains(t, err, "is not a directory of this package")
	require.NoError(t, os.Remove(filepath.Join(dir, "..data")))

	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "d")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "..2020_01_01_00_00_00.1")))
	write(t, dir, atomic.Payload{"d/canary": {Data: []byte("dead")}})
	data, err := os.ReadFile(canary)
	require.NoError(t, err)
	assert.Equal(t, "alive", string(data))
	assert.Equal(t, []string{"canary"}, list(t, outside))
}

func TestAnOwnerIsSet(t *testing.T) {
	if os.Geteuid() != 0 || strings.HasPrefix(runtime.GOOS, "windows") {
		t.Skip("only root gives files away")
	}
	dir := t.TempDir()
	uid := int64(1234)
	_, err := atomic.Write(dir, atomic.Payload{
		"token": {Mode: 0o600, UID: &uid}, "a/token": {Mode: 0o600, UID: &uid}, "data": {Mode: 0o600},
	}, atomic.Options{})
	require.NoError(t, err)
	for name, want := range map[string]int{"token": 1234, "a/token": 1234, "data": os.Geteuid()} {
		assert.Equal(t, want, owner(t, os.Stat, filepath.Join(dir, name)), name)
		link, _, _ := strings.Cut(name, "/")
		assert.Equal(t, want, owner(t, os.Lstat, filepath.Join(dir, link)), "the link %s", link)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

// vol-42: a reader that has the file itself, as a subPath mount has, keeps the old
// content.
func TestAnOpenFileKeepsItsContent(t *testing.T) {
	needLinks(t)
	dir := t.TempDir()
	write(t, dir, atomic.Payload{"a": {Data: []byte("old"), Mode: 0o600}})
	opened, err := os.Open(filepath.Join(dir, "a"))
	require.NoError(t, err)
	defer opened.Close()
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be removed here")
	}
	write(t, dir, atomic.Payload{"a": {Data: []byte("new"), Mode: 0o600}})
	data := make([]byte, 3)
	_, err = opened.Read(data)
	require.NoError(t, err)
	assert.Equal(t, "old", string(data))
	assert.Equal(t, map[string]string{"a": "new"}, tree(t, dir))
}
