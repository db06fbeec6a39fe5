//go:build unix

package untrusted_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// inodesOf returns the inodes that Walk visits, and how often.
func inodesOf(t *testing.T, dir string, visited func()) map[uint64]int {
	t.Helper()
	found := map[uint64]int{}
	require.NoError(t, untrusted.Walk(t.Context(), dir, func(st *unix.Stat_t) (bool, error) {
		found[st.Ino]++
		if visited != nil {
			visited()
		}
		return true, nil
	}))
	return found
}

// nest makes directories of the given depth below dir, each with a file after its child
// is made, and returns the number of both. The paths exceed what a system call takes.
func nest(t *testing.T, dir string, depth int) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	for range depth {
		require.NoError(t, unix.Mkdirat(fd, "a-directory-with-a-name", 0o755))
		file, err := unix.Openat(fd, "z", unix.O_CREAT|unix.O_WRONLY, 0o644)
		require.NoError(t, err)
		require.NoError(t, unix.Close(file))
		next, err := unix.Openat(fd, "a-directory-with-a-name", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		fd = next
	}
	require.NoError(t, unix.Close(fd))
	return 2 * depth
}

func TestWalkVisitsEachEntryOnce(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		sub := filepath.Join(dir, fmt.Sprint(i%7), fmt.Sprint("d", i))
		require.NoError(t, os.MkdirAll(sub, 0o755))
		for j := range i * 10 {
			require.NoError(t, os.WriteFile(filepath.Join(sub, fmt.Sprintf("file-%d", j)), nil, 0o644))
		}
		require.NoError(t, os.Symlink("/", filepath.Join(sub, "link")))
	}
	want := map[uint64]int{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		require.NoError(t, err)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(path, &st))
		want[st.Ino]++
		return nil
	}))
	assert.Equal(t, want, inodesOf(t, dir, nil))
}

func TestWalkFindsItsWayBackFromAnyDepth(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { assert.NoError(t, untrusted.RemoveTree(context.Background(), dir)) })
	entries := 1 + nest(t, dir, 1000)
	most := 0
	found := inodesOf(t, dir, func() {
		if open, err := os.ReadDir("/proc/self/fd"); err == nil {
			most = max(most, len(open))
		}
	})
	assert.Len(t, found, entries)
	assert.Less(t, most, 100, "open descriptors")
}

func TestWalkOfAWideDirectoryCostsLittleMemory(t *testing.T) {
	dir := t.TempDir()
	const files = 5_000
	for i := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("a-file-with-a-rather-long-name-%d", i)), nil, 0o644))
	}
	visited := 0
	got := allocated(func() {
		require.NoError(t, untrusted.Walk(t.Context(), dir, func(*unix.Stat_t) (bool, error) { visited++; return true, nil }))
	})
	assert.Equal(t, files+1, visited)
	assert.Less(t, got/files, uint64(1000), "bytes allocated for each file, of which none are kept")
}

func TestWalkEntersOnlySelectedDirectories(t *testing.T) {
	dir := t.TempDir()
	nest(t, dir, 3)
	visited := 0
	require.NoError(t, untrusted.Walk(t.Context(), dir, func(*unix.Stat_t) (bool, error) {
		visited++
		return visited == 1, nil
	}))
	assert.Equal(t, 3, visited, "the root, its file and its directory")
}

// A directory that is moved out of the tree while Walk is far below it does not lead
// Walk out of the tree.
func TestWalkStaysBelowItsRootWhenADirectoryIsMoved(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	t.Cleanup(func() { // too deep for os.RemoveAll of older systems
		assert.NoError(t, untrusted.RemoveTree(context.Background(), dir))
		assert.NoError(t, untrusted.RemoveTree(context.Background(), elsewhere))
	})
	nest(t, dir, 100)
	outside := map[uint64]bool{}
	for i := range 500 { // more than the walk has read of the directory that it left
		canary := filepath.Join(elsewhere, fmt.Sprint("canary-", i))
		require.NoError(t, os.WriteFile(canary, nil, 0o644))
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(canary, &st))
		outside[st.Ino] = true
	}

	at := func(depth int) string {
		return filepath.Join(dir, strings.Repeat("a-directory-with-a-name/", depth))
	}
	for i := range 2000 { // so that the walk leaves the directory before its end
		require.NoError(t, os.WriteFile(filepath.Join(at(79), fmt.Sprint("file-", i)), nil, 0o644))
	}
	var trigger unix.Stat_t
	require.NoError(t, unix.Lstat(at(95), &trigger))
	found := map[uint64]int{}
	require.NoError(t, untrusted.Walk(t.Context(), dir, func(st *unix.Stat_t) (bool, error) {
		if found[st.Ino]++; st.Ino == trigger.Ino {
			require.NoError(t, os.Rename(at(80), filepath.Join(elsewhere, "moved")))
		}
		return true, nil
	}))
	assert.Contains(t, found, trigger.Ino)
	for inode := range found {
		assert.False(t, outside[inode], "visited a file out of the tree")
	}
}

func TestWalkEndsWithTheFirstError(t *testing.T) {
	dir := t.TempDir()
	nest(t, dir, 5)
	stop := errors.New("stop")
	visited := 0
	err := untrusted.Walk(t.Context(), dir, func(*unix.Stat_t) (bool, error) {
		if visited++; visited == 4 {
			return false, stop
		}
		return true, nil
	})
	assert.ErrorIs(t, err, stop)
	assert.Equal(t, 4, visited)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = untrusted.Walk(ctx, dir, func(*unix.Stat_t) (bool, error) { return true, nil })
	assert.ErrorIs(t, err, context.Canceled)
	err = untrusted.Walk(t.Context(), filepath.Join(dir, "none"), nil)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
	assert.Error(t, untrusted.Walk(t.Context(), filepath.Join(dir, "link"), nil))
}
